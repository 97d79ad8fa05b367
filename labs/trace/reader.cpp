#include "labs/trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "labs/trace/log.hpp"
#include "labs/trace/mapped_file.hpp"

namespace oomlab::trace {

struct Reader::State {
    std::unique_ptr<MappedFile> file;
    Regions regions;
    LogCursor cursor;
    bool saw_finish = false;
    bool shrunk = false;

    // The part of a region that still stands in the file. Another process may cut the file while it
    // is mapped, and touching what is gone would be a SIGBUS.
    u64 standing(std::span<std::byte> region) const {
        const u64 begin = static_cast<u64>(region.data() - file->bytes().data());
        const u64 size = file->size_now();
        return size <= begin ? 0 : std::min<u64>(region.size(), size - begin);
    }
    // 0 once the file was cut below its header.
    u64 live(std::size_t offset) const {
        return file->size_now() < kHeaderBytes ? 0 : load_live(file->bytes(), offset);
    }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::~Reader() = default;

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
    OOMLAB_TRY(file, MappedFile::open(path, MappedFile::Access::read));
    OOMLAB_TRY(regions, read_header(path, file->bytes()));
    auto state = std::make_unique<State>();
    state->cursor = LogCursor(regions.virtual_log, kVirtualLog);
    state->regions = regions;
    state->file = std::move(file);
    return std::unique_ptr<Reader>(new Reader(std::move(state)));
}

std::size_t Reader::poll(const std::function<void(const RecordView&)>& each) {
    State& s = *state_;
    const u64 standing = s.standing(s.regions.virtual_log);
    if (standing < s.regions.virtual_log.size()) {
        s.cursor.limit(standing);
        s.shrunk = true;
    }
    std::size_t count = 0;
    while (const auto record = s.cursor.next()) {
        if (record->type == RecordType::finish) s.saw_finish = true;
        each(*record);
        ++count;
    }
    return count;
}

void Reader::wall(const std::function<void(const RecordView&)>& each) const {
    LogCursor cursor(state_->regions.wall_log, kWallLog);
    cursor.limit(state_->standing(state_->regions.wall_log));
    while (const auto record = cursor.next()) each(*record);
}

std::vector<RingOp> Reader::ring() const {
    const auto region = state_->regions.ring.first(state_->standing(state_->regions.ring));
    const auto load = [&](std::size_t word) {
        return std::atomic_ref<u64>(reinterpret_cast<u64*>(region.data())[word])
            .load(std::memory_order_acquire);
    };
    constexpr std::size_t kWords = sizeof(RingOp) / sizeof(u64);
    std::vector<RingOp> ops;
    for (std::size_t slot = 0; slot < region.size() / sizeof(RingOp); ++slot) {
        std::array<u64, kWords> words{};
        for (std::size_t w = 0; w < kWords; ++w) words[w] = load(slot * kWords + w);
        // Both copies of the number must be the same, also after the rest was read, and must belong
        // to this slot.
        const u64 seq = words[0];
        if (seq == 0 || (seq - 1) % kRingOps != slot || words[5] >> 32 != (seq & 0xffffffff) ||
            load(slot * kWords + 5) != words[5] || load(slot * kWords) != seq) {
            continue;
        }
        auto op = std::bit_cast<RingOp>(words);
        op.pad = 0;
        if (op.owner >= Owner::count_ || op.kind > OpKind::failed) continue;
        ops.push_back(op);
    }
    std::sort(ops.begin(), ops.end(), [](const RingOp& a, const RingOp& b) { return a.seq < b.seq; });
    // A slot that is more than one round behind was overwritten while the others were read.
    const auto is_old = [&](const RingOp& op) { return op.seq + kRingOps <= ops.back().seq; };
    ops.erase(ops.begin(), std::find_if_not(ops.begin(), ops.end(), is_old));
    return ops;
}

u64 Reader::bytes_read() const { return state_->cursor.position(); }

bool Reader::finished() const {
    return state_->saw_finish || state_->live(offsetof(LiveWords, closed)) != 0;
}

u64 Reader::dropped() const { return state_->live(offsetof(LiveWords, dropped)); }
u64 Reader::lost() const { return state_->live(offsetof(LiveWords, lost)); }

std::string Reader::damage() const {
    const State& s = *state_;
    const auto shown = fmt::format("{} records before it are shown", s.cursor.records());
    if (s.cursor.damaged()) {
        return fmt::format("the trace is damaged at byte {} ({})",
                           kHeaderBytes + s.cursor.position(), shown);
    }
    if (s.regions.cut || s.shrunk) {
        return fmt::format("the file is shorter than its header says: a cut copy ({})", shown);
    }
    return "";
}

}  // namespace oomlab::trace
