#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "labs/trace/checksum.hpp"
#include "labs/trace/log.hpp"
#include "labs/trace/mapped_file.hpp"
#include "labs/trace/writer.hpp"

namespace oomlab::trace {

namespace {
FileHeader make_header(u64 virtual_bytes, u64 wall_bytes, u64 ring_slots, bool compacted) {
    FileHeader h{};
    h.magic = kMagic;
    h.version = kFormatVersion;
    h.header_bytes = static_cast<u32>(kHeaderBytes);
    h.virtual_offset = kHeaderBytes;
    h.virtual_bytes = virtual_bytes;
    h.wall_offset = h.virtual_offset + virtual_bytes;
    h.wall_bytes = wall_bytes;
    h.ring_offset = h.wall_offset + wall_bytes;
    h.ring_slots = ring_slots;
    h.compacted = compacted ? 1 : 0;
    h.crc = crc32c(std::as_bytes(std::span(&h, 1)).first(offsetof(FileHeader, crc)));
    return h;
}

// A file that is closed, and removed unless keep() was called.
struct NewFile {
    std::string path;
    int fd;
    bool kept = false;
    ~NewFile() {
        if (fd >= 0) ::close(fd);
        if (!kept && fd >= 0) ::unlink(path.c_str());
    }
};

bool write_at(int fd, std::span<const std::byte> bytes, u64 offset) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += static_cast<u64>(n);
    }
    return true;
}

Failure<Error> io_error(const std::string& path, const char* what, int error) {
    return fail(Error::io(fmt::format("{}: {}: {}", path, what, errno_text(error))));
}

// Only a trace (or an empty file) may be replaced: a mistyped name must not cost anybody a file.
Result<void> clear_place(const std::string& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) return {};
    bool ours = S_ISREG(st.st_mode) && st.st_size == 0;
    if (S_ISREG(st.st_mode) && !ours) {
        std::array<char, kMagic.size()> magic{};
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        ours = fd >= 0 && ::pread(fd, magic.data(), magic.size(), 0) ==
                              static_cast<ssize_t>(magic.size()) && magic == kMagic;
        if (fd >= 0) ::close(fd);
    }
    if (!ours) {
        return fail(Error::io(fmt::format(
            "{}: exists and is not a trace, so it is not overwritten: choose another name", path)));
    }
    if (::unlink(path.c_str()) != 0) return io_error(path, "cannot replace the old trace", errno);
    return {};
}
}  // namespace

Result<void> create_trace_file(const std::string& path, const FileSizes& sizes) {
    const u64 virtual_bytes = round_up(std::max<u64>(sizes.virtual_log_bytes, 4 * kKiB), kFrameAlign);
    const u64 wall_bytes = round_up(std::max<u64>(sizes.wall_log_bytes, 4 * kKiB), kFrameAlign);
    const u64 total = checked_add(kHeaderBytes + kRingBytes, checked_add(virtual_bytes, wall_bytes));
    if (total > kMaxFileBytes) {
        return fail(Error::usage(fmt::format("{}: a trace of {} is too large", path, human_bytes(total))));
    }
    OOMLAB_TRY_VOID(clear_place(path));
    NewFile file{path, ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file.fd < 0) return io_error(path, "cannot make the trace file", errno);
    if (const int error = ::posix_fallocate(file.fd, 0, static_cast<off_t>(total)); error != 0) {
        return io_error(path, fmt::format("no room for a trace of {}", human_bytes(total)).c_str(), error);
    }
    // Every page is made here and charged to this process, not to the one that will write.
    void* at = ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.fd, 0);
    if (at == MAP_FAILED) return io_error(path, "cannot map the trace file", errno);
    const FileHeader header = make_header(virtual_bytes, wall_bytes, kRingOps, false);
    std::memcpy(at, &header, sizeof(header));
    ::munmap(at, total);
    file.kept = true;
    return {};
}

Result<void> compact_trace_file(const std::string& path) {
    OOMLAB_TRY(mapped, MappedFile::open(path, MappedFile::Access::read_write));
    OOMLAB_TRY(regions, read_header(path, mapped->bytes()));
    LogCursor virtual_end(regions.virtual_log, kVirtualLog), wall_end(regions.wall_log, kWallLog);
    while (virtual_end.next()) {}
    while (wall_end.next()) {}
    u64 slots = regions.ring.size() / sizeof(RingOp);
    const auto* words = reinterpret_cast<const u64*>(regions.ring.data());
    while (slots > 0 && words[(slots - 1) * (sizeof(RingOp) / sizeof(u64))] == 0) --slots;

    // Those who have the old file open learn here that it is over.
    store_live(mapped->bytes(), offsetof(LiveWords, closed), 1);
    const u64 wall_bytes = wall_end.position() + kEvidenceReserveBytes;
    const FileHeader header = make_header(virtual_end.position(), wall_bytes, slots, true);
    std::vector<std::byte> head(kHeaderBytes);
    std::memcpy(head.data(), mapped->bytes().data(), kHeaderBytes);
    std::memcpy(head.data(), &header, sizeof(header));

    const std::string temporary = path + ".compact";
    ::unlink(temporary.c_str());
    NewFile file{temporary, ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file.fd < 0) return io_error(temporary, "cannot make the compacted trace", errno);
    const bool written =
        ::ftruncate(file.fd, static_cast<off_t>(header.ring_offset + slots * sizeof(RingOp))) == 0 &&
        write_at(file.fd, head, 0) &&
        write_at(file.fd, regions.virtual_log.first(virtual_end.position()), header.virtual_offset) &&
        write_at(file.fd, regions.wall_log.first(wall_end.position()), header.wall_offset) &&
        write_at(file.fd, regions.ring.first(slots * sizeof(RingOp)), header.ring_offset);
    if (!written) return io_error(temporary, "cannot write the compacted trace", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        return io_error(path, "cannot put the compacted trace in place", errno);
    }
    file.kept = true;
    return {};
}

Result<void> append_evidence(const std::string& path, i64 wall_us, std::string_view json) {
    OOMLAB_TRY(mapped, MappedFile::open(path, MappedFile::Access::read_write));
    OOMLAB_TRY(regions, read_header(path, mapped->bytes()));
    LogCursor end(regions.wall_log, kWallLog);
    while (end.next()) {}
    LogAppender log(regions.wall_log, kWallLog, end);
    if (!log.append(RecordType::evidence, wall_us, {},
                    std::as_bytes(std::span(json.data(), json.size())), 0)) {
        return fail(Error::io(fmt::format("{}: no room in the trace for the evidence", path)));
    }
    store_live(mapped->bytes(), offsetof(LiveWords, closed), 1);
    return {};
}

}  // namespace oomlab::trace
