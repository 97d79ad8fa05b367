#include "labs/server/host/host_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace oomlab::server {

namespace {
constexpr u64 kPage = 4096;
constexpr u64 kStagingBytes = 2 * kMiB;

Failure host_failure(const char* what, u64 bytes) {
    Failure f;
    f.kind = trace::FailureKind::host_alloc;
    f.message = fmt::format("{}: cannot allocate {} of host memory: {}", what, human_bytes(bytes), std::strerror(errno));
    return f;
}

void touch(void* at, u64 bytes) {
    volatile char* p = static_cast<volatile char*>(at);
    for (u64 i = 0; i < bytes; i += kPage) p[i] = static_cast<char>(i >> 12 | 1);
}

void* map_touched(u64 bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    touch(at, bytes);
    return at;
}
}  // namespace

HostMemory::~HostMemory() { drop_all(); }

Outcome<void> HostMemory::keep(u64 bytes) {
    bytes = round_up(bytes, kPage);
    if (bytes == 0) return {};
    if (kept_ + bytes > kHostBytesMax) {
        errno = ENOMEM;
        return fail(host_failure("the lab's own ceiling", bytes));
    }
    void* at = map_touched(bytes);
    if (at == nullptr) return fail(host_failure("mmap", bytes));
    ranges_.push_back({at, bytes});
    kept_ += bytes;
    return {};
}

Outcome<void> HostMemory::pass(u64 bytes) {
    bytes = std::min(round_up(bytes, kPage), kHostBytesMax);
    if (bytes == 0) return {};
    void* at = map_touched(bytes);
    if (at == nullptr) return fail(host_failure("tokenizer", bytes));
    munmap(at, bytes);
    return {};
}

void HostMemory::drop_all() {
    for (const Range& r : ranges_) munmap(r.at, r.bytes);
    ranges_.clear();
    kept_ = 0;
}

HostLoad::HostLoad(const Scenario::Host& host)
    : host_(host), bytes_(host.checkpoint_bytes != 0 ? host.checkpoint_bytes : 64 * kMiB) {}

HostLoad::~HostLoad() {
    if (map_ != nullptr) munmap(map_, bytes_);
    if (staging_ != nullptr) munmap(staging_, round_up(std::min<u64>(bytes_, kStagingBytes), kPage));
    if (file_ >= 0) close(file_);
}

Outcome<void> HostLoad::shard(u64 step, u64 steps) {
    const u64 begin = bytes_ / steps * step;
    const u64 end = step + 1 == steps ? bytes_ : bytes_ / steps * (step + 1);
    if (host_.load == "full_copy") return memory_.keep(end - begin);
    if (host_.load == "shard_stream") {   // every byte passes through one staging buffer
        const u64 buffer = std::min<u64>(bytes_, kStagingBytes);
        if (staging_ == nullptr) staging_ = map_touched(round_up(buffer, kPage));
        if (staging_ == nullptr) return fail(host_failure("staging buffer", buffer));
        for (u64 at = begin; at < end; at += buffer) {
            std::memset(staging_, static_cast<int>(at >> 22 | 1), std::min(buffer, end - at));
        }
        return {};
    }
    if (map_ == nullptr) {   // a file of that size, without a name
        const char* folder = std::getenv("TMPDIR");
        file_ = open(folder != nullptr ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (file_ < 0) return fail(host_failure("checkpoint file", bytes_));
        // Written in pieces, as a download would be, so that its pages are clean file cache.
        const std::vector<char> piece(kMiB, 'w');
        for (u64 at = 0; at < bytes_; at += piece.size()) {
            const u64 n = std::min<u64>(piece.size(), bytes_ - at);
            if (pwrite(file_, piece.data(), n, static_cast<off_t>(at)) != static_cast<ssize_t>(n)) {
                return fail(host_failure("checkpoint file", bytes_));
            }
        }
        fsync(file_);
        posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
        const int locked = host_.load == "mmap_locked" ? MAP_LOCKED : 0;
        map_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | locked, file_, 0);
        if (map_ == MAP_FAILED) {
            map_ = nullptr;
            return fail(host_failure("mmap of the checkpoint", bytes_));
        }
    }
    volatile char sum = 0;
    const volatile char* p = static_cast<const volatile char*>(map_);
    for (u64 i = begin; i < end; i += kPage) sum = static_cast<char>(sum + p[i]);
    return {};
}

}  // namespace oomlab::server
