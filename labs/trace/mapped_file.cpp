#include "labs/trace/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "labs/trace/checksum.hpp"

namespace oomlab::trace {

std::string errno_text(int error) { return std::generic_category().message(error); }

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path, Access access) {
    const bool writes = access == Access::read_write;
    const int fd = ::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return fail(Error::io(fmt::format("{}: cannot open the trace: {}", path, errno_text(errno))));
    }
    struct stat st {};
    const bool regular = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const u64 size = regular ? static_cast<u64>(st.st_size) : 0;
    if (size < kHeaderBytes || size > kMaxFileBytes) {
        ::close(fd);
        return fail(Error::parse(fmt::format(
            "{}: not an oomlab trace: {}", path,
            !regular ? "not a regular file"
                     : (size > kMaxFileBytes ? "larger than any trace" : "too short for its header"))));
    }
    void* at = ::mmap(nullptr, size, writes ? PROT_READ | PROT_WRITE : PROT_READ,
                      MAP_SHARED | (writes ? MAP_POPULATE : 0), fd, 0);
    if (at == MAP_FAILED) {
        const int error = errno;
        ::close(fd);
        return fail(Error::io(fmt::format("{}: cannot map the trace: {}", path, errno_text(error))));
    }
    return std::unique_ptr<MappedFile>(
        new MappedFile(fd, {static_cast<std::byte*>(at), static_cast<std::size_t>(size)}));
}

MappedFile::~MappedFile() {
    ::munmap(bytes_.data(), bytes_.size());
    ::close(fd_);
}

u64 MappedFile::size_now() const {
    struct stat st {};
    if (::fstat(fd_, &st) != 0 || st.st_size < 0) return 0;
    return std::min<u64>(static_cast<u64>(st.st_size), bytes_.size());
}

Result<Regions> read_header(const std::string& path, std::span<std::byte> file) {
    const auto bad = [&](const std::string& why) {
        return fail(Error::parse(fmt::format("{}: {}", path, why)));
    };
    if (file.size() < kHeaderBytes) return bad("not an oomlab trace: too short for its header");
    Regions r;
    std::memcpy(&r.header, file.data(), sizeof(FileHeader));
    const FileHeader& h = r.header;
    if (h.magic != kMagic) return bad("not an oomlab trace (it begins differently)");
    if (h.version != kFormatVersion) {
        return bad(fmt::format("trace format {}, this oomlab reads format {}: open it with the "
                               "version that wrote it", h.version, kFormatVersion));
    }
    if (h.crc != crc32c(file.first(offsetof(FileHeader, crc)))) {
        return bad("the trace's header is damaged (checksum)");
    }
    // Each offset below is bounded before it is used, so the sums cannot wrap.
    const auto fits = [](u64 offset, u64 size) {
        return offset % kFrameAlign == 0 && size % kFrameAlign == 0 && offset <= kMaxFileBytes &&
               size <= kMaxFileBytes;
    };
    if (h.header_bytes != kHeaderBytes || h.ring_slots > kRingOps || h.compacted > 1 ||
        !fits(h.virtual_offset, h.virtual_bytes) || !fits(h.wall_offset, h.wall_bytes) ||
        !fits(h.ring_offset, h.ring_slots * sizeof(RingOp)) || h.virtual_offset != kHeaderBytes ||
        h.wall_offset != h.virtual_offset + h.virtual_bytes ||
        h.ring_offset != h.wall_offset + h.wall_bytes) {
        return bad("the trace's header contradicts itself");
    }
    const auto region = [&](u64 offset, u64 size) {
        const u64 begin = std::min<u64>(offset, file.size());
        const u64 length = std::min<u64>(size, file.size() - begin);
        r.cut = r.cut || length < size;
        return file.subspan(begin, length);
    };
    r.virtual_log = region(h.virtual_offset, h.virtual_bytes);
    r.wall_log = region(h.wall_offset, h.wall_bytes);
    r.ring = region(h.ring_offset, h.ring_slots * sizeof(RingOp));
    return r;
}

namespace {
std::atomic_ref<u64> live_word(std::span<std::byte> file, std::size_t offset_in_live) {
    return std::atomic_ref<u64>(
        *reinterpret_cast<u64*>(file.data() + kLiveOffset + offset_in_live));
}
}  // namespace

u64 load_live(std::span<std::byte> file, std::size_t offset_in_live) {
    return live_word(file, offset_in_live).load(std::memory_order_acquire);
}
void store_live(std::span<std::byte> file, std::size_t offset_in_live, u64 value) {
    live_word(file, offset_in_live).store(value, std::memory_order_release);
}

}  // namespace oomlab::trace
