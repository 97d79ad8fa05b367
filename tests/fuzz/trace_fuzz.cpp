// The trace reader against any bytes: as they are, with the checksums put right, since otherwise hardly
// any mutation gets past the first check, and as the logs of a file whose header is sound.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "labs/trace/checksum.hpp"
#include "labs/trace/log.hpp"
#include "labs/trace/views.hpp"
#include "labs/trace/writer.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace oomlab;
using namespace oomlab::trace;

namespace {
// A file in memory, reachable by a path.
class MemoryFile {
  public:
    explicit MemoryFile(std::span<const std::byte> bytes) : fd_(::memfd_create("fuzz", 0)) {
        OOMLAB_CHECK(fd_ >= 0);
        OOMLAB_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

u64 use_everything(Reader& reader) {
    u64 sum = 0;
    SampleSeries series(16);
    const auto use = [&](const RecordView& r) {
        sum += r.payload.size() + std::strlen(record_type_name(r.type));
        for (const std::byte b : r.payload) sum += static_cast<u64>(b);
        if (const auto map = block_map(r)) {
            for (const auto& s : map->segments) {
                for (u32 i = 0; i < s.blocks; ++i) sum += map->blocks[s.first_block + i].bytes;
            }
        }
        if (const auto map = kv_map(r)) sum += map->owners.size();
        if (const auto f = failure(r)) {
            sum += f->message.size() + std::strlen(phase_name(f->record.phase)) +
                   std::strlen(failure_kind_name(f->record.kind)) + owner_name(f->record.owner).size();
        }
        if (const auto s = record_of<SampleRecord>(r, RecordType::sample)) series.add(r.time_us, *s);
        if (const auto q = record_of<RequestRecord>(r, RecordType::request)) {
            sum += std::strlen(request_event_name(q->event));
        }
    };
    const std::size_t count = reader.poll(use);
    OOMLAB_CHECK(reader.poll(use) == 0);   // nothing is new, damaged or not
    OOMLAB_CHECK(count <= reader.bytes_read() / sizeof(Frame));
    reader.wall(use);
    u64 before = 0;
    for (const RingOp& op : reader.ring()) {
        OOMLAB_CHECK(op.seq > before && op.owner < Owner::count_);
        before = op.seq;
    }
    return sum + reader.dropped() + reader.lost() + reader.damage().size() + (reader.finished() ? 1 : 0);
}

void read_and_append(std::span<const std::byte> bytes) {
    const MemoryFile file(bytes);
    auto reader = Reader::open(file.path());
    if (!reader) {
        OOMLAB_CHECK(reader.error().message.find('\n') == std::string::npos);
        return;
    }
    const volatile u64 keep = use_everything(**reader);
    static_cast<void>(keep);
    auto writer = Writer::open(file.path());
    if (!writer) return;
    // What a writer adds to any file that it accepts is read behind what was there.
    auto again = Reader::open(file.path());
    OOMLAB_CHECK(again.has_value());
    const std::size_t records = (*again)->poll([](const RecordView&) {});
    if (!(*writer)->append(RecordType::phase, 7, PhaseRecord{})) return;
    auto after = Reader::open(file.path());
    OOMLAB_CHECK(after.has_value());
    OOMLAB_CHECK((*after)->poll([](const RecordView&) {}) == records + 1);
    OOMLAB_CHECK((*after)->damage().empty());
}

// Numbers and checksums put right along one log, as far as the sizes make sense.
void repair_log(std::span<std::byte> log, u32 log_id) {
    u64 seq = 0;
    for (std::size_t at = 0; log.size() - at >= sizeof(Frame);) {
        Frame frame;
        std::memcpy(&frame, log.data() + at, sizeof(frame));
        if (frame.commit == 0 || frame.payload_bytes > kMaxPayloadBytes ||
            frame_bytes(frame.payload_bytes) > log.size() - at) {
            return;
        }
        frame.commit = ++seq;
        frame.flags = 0;
        frame.pad = 0;
        frame.crc = frame_crc(frame, seq, log_id, log.subspan(at + sizeof(Frame), frame.payload_bytes), {});
        std::memcpy(log.data() + at, &frame, sizeof(frame));
        at += frame_bytes(frame.payload_bytes);
    }
}

std::vector<std::byte> repaired(std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    if (copy.size() < kHeaderBytes) return copy;
    FileHeader h;
    std::memcpy(&h, copy.data(), sizeof(h));
    h.magic = kMagic;
    h.version = kFormatVersion;
    h.crc = crc32c(std::as_bytes(std::span(&h, 1)).first(offsetof(FileHeader, crc)));
    std::memcpy(copy.data(), &h, sizeof(h));
    const auto part = [&](u64 offset, u64 size) {
        const u64 begin = std::min<u64>(offset, copy.size());
        return std::span(copy).subspan(begin, std::min<u64>(size, copy.size() - begin));
    };
    repair_log(part(h.virtual_offset, h.virtual_bytes), kVirtualLog);
    repair_log(part(h.wall_offset, h.wall_bytes), kWallLog);
    return copy;
}
// The input as the two logs of a finished file.
std::vector<std::byte> wrapped(std::span<const std::byte> bytes) {
    FileHeader h{};
    h.header_bytes = kHeaderBytes;
    h.virtual_offset = kHeaderBytes;
    h.virtual_bytes = round_up(bytes.size() / 2, kFrameAlign);
    h.wall_offset = h.virtual_offset + h.virtual_bytes;
    h.wall_bytes = round_up(bytes.size(), kFrameAlign);
    h.ring_offset = h.wall_offset + h.wall_bytes;
    h.compacted = 1;
    std::vector<std::byte> file(h.ring_offset);
    std::memcpy(file.data(), &h, sizeof(h));
    std::copy(bytes.begin(), bytes.end(), file.begin() + kHeaderBytes);
    return file;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    read_and_append(bytes);
    read_and_append(repaired(bytes));
    read_and_append(repaired(wrapped(bytes)));
    return 0;
}
