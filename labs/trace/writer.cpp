#include "labs/trace/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "labs/trace/log.hpp"
#include "labs/trace/mapped_file.hpp"

namespace oomlab::trace {

namespace {
enum class Tier { droppable, kept, last };

Tier tier_of(RecordType type) {
    switch (type) {
        case RecordType::sample:
        case RecordType::block_map:
        case RecordType::kv_map:
        case RecordType::log:
        case RecordType::memory_summary:
        case RecordType::device_csv:
        case RecordType::outside: return Tier::droppable;
        case RecordType::phase:
        case RecordType::budget:
        case RecordType::failure:
        case RecordType::finish: return Tier::last;
        default: return Tier::kept;
    }
}
}  // namespace

struct Writer::State {
    std::unique_ptr<MappedFile> file;
    LogAppender virtual_log;
    u64 dropped = 0, lost = 0;
    bool failed_before = false;
    i64 failure_us = 0;

    std::mutex wall_mutex;
    LogAppender wall_log;

    u64 keep_free(Tier tier) const {
        const u64 capacity = virtual_log.capacity_bytes();
        switch (tier) {
            case Tier::droppable: return capacity / 4;
            case Tier::kept: return std::min<u64>(capacity / 16, kMiB);
            case Tier::last: return 0;
        }
        return 0;
    }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::~Writer() = default;

Result<std::unique_ptr<Writer>> Writer::open(const std::string& path) {
    OOMLAB_TRY(file, MappedFile::open(path, MappedFile::Access::read_write));
    OOMLAB_TRY(regions, read_header(path, file->bytes()));
    if (regions.cut || regions.header.compacted != 0 || regions.ring.size() != kRingBytes) {
        return fail(Error::io(fmt::format(
            "{}: the trace is finished or cut: nothing can be added to it", path)));
    }
    auto state = std::make_unique<State>();
    LogCursor end(regions.virtual_log, kVirtualLog), wall_end(regions.wall_log, kWallLog);
    while (end.next()) {}
    while (wall_end.next()) {}
    state->virtual_log = LogAppender(regions.virtual_log, kVirtualLog, end);
    state->wall_log = LogAppender(regions.wall_log, kWallLog, wall_end);
    state->dropped = load_live(file->bytes(), offsetof(LiveWords, dropped));
    state->lost = load_live(file->bytes(), offsetof(LiveWords, lost));
    store_live(file->bytes(), offsetof(LiveWords, closed), 0);

    auto* ring = reinterpret_cast<u64*>(regions.ring.data());
    u64 ring_seq = 0;
    for (u64 i = 0; i < kRingOps; ++i) ring_seq = std::max(ring_seq, ring[i * kRingWords]);
    state->file = std::move(file);
    std::unique_ptr<Writer> writer(new Writer(std::move(state)));
    writer->ring_ = ring;
    writer->ring_seq_ = ring_seq;
    return writer;
}

bool Writer::append(RecordType type, i64 time_us, std::span<const std::byte> payload,
                    std::span<const std::byte> tail) {
    State& s = *state_;
    Tier tier = tier_of(type);
    const bool map = type == RecordType::block_map || type == RecordType::kv_map;
    if (map && s.failed_before && time_us == s.failure_us) tier = Tier::kept;
    if (type == RecordType::failure) {
        s.failed_before = true;
        s.failure_us = time_us;
    }
    if (s.virtual_log.append(type, time_us, payload, tail, s.keep_free(tier))) return true;
    if (tier == Tier::droppable || map) {
        store_live(s.file->bytes(), offsetof(LiveWords, dropped), ++s.dropped);
    } else {
        store_live(s.file->bytes(), offsetof(LiveWords, lost), ++s.lost);
    }
    return false;
}

bool Writer::append_wall(RecordType type, i64 wall_us, std::span<const std::byte> payload,
                         std::span<const std::byte> tail) {
    State& s = *state_;
    const std::lock_guard lock(s.wall_mutex);
    // What is kept free here is for the supervisor's evidence.
    const u64 keep_free = std::min<u64>(kEvidenceReserveBytes, s.wall_log.capacity_bytes() / 2);
    return s.wall_log.append(type, wall_us, payload, tail, keep_free);
}

u64 Writer::dropped() const { return state_->dropped; }
u64 Writer::virtual_bytes_used() const { return state_->virtual_log.used_bytes(); }
u64 Writer::virtual_bytes_capacity() const { return state_->virtual_log.capacity_bytes(); }

}  // namespace oomlab::trace
