#include "labs/trace/log.hpp"

#include <atomic>
#include <cstring>

#include "labs/trace/checksum.hpp"

namespace oomlab::trace {

u32 frame_crc(Frame frame, u64 seq, u32 log_id, std::span<const std::byte> payload,
              std::span<const std::byte> tail) {
    frame.commit = seq;
    frame.crc = 0;
    const u32 seed = crc32c(std::as_bytes(std::span(&log_id, 1)));
    return crc32c(tail, crc32c(payload, crc32c(std::as_bytes(std::span(&frame, 1)), seed)));
}

namespace {
u64 load_commit(const std::byte* at) {
    // The word is only read; atomic_ref of a const type is not in C++20.
    auto* word = const_cast<u64*>(reinterpret_cast<const u64*>(at));
    return std::atomic_ref<u64>(*word).load(std::memory_order_acquire);
}
void store_commit(std::byte* at, u64 value, std::memory_order order) {
    std::atomic_ref<u64>(*reinterpret_cast<u64*>(at)).store(value, order);
}
}  // namespace

std::optional<RecordView> LogCursor::next() {
    if (damaged_ || position_ > memory_.size() || memory_.size() - position_ < sizeof(Frame)) {
        return std::nullopt;
    }
    const std::byte* at = memory_.data() + position_;
    const u64 commit = load_commit(at);
    if (commit == 0) return std::nullopt;
    damaged_ = true;
    if (commit != seq_ + 1) return std::nullopt;
    Frame frame;
    std::memcpy(&frame, at, sizeof(frame));
    if (frame.flags != 0 || frame.pad != 0 || frame.payload_bytes > kMaxPayloadBytes ||
        frame_bytes(frame.payload_bytes) > memory_.size() - position_) {
        return std::nullopt;
    }
    const std::span<const std::byte> payload(at + sizeof(Frame), frame.payload_bytes);
    if (frame_crc(frame, commit, log_id_, payload, {}) != frame.crc) return std::nullopt;
    damaged_ = false;
    seq_ = commit;
    position_ += frame_bytes(frame.payload_bytes);
    return RecordView{static_cast<RecordType>(frame.type), commit, frame.time_us, payload};
}

LogAppender::LogAppender(std::span<std::byte> memory, u32 log_id, const LogCursor& end)
    : memory_(memory), position_(end.position()), seq_(end.records()), log_id_(log_id) {
    // A writer that died in the middle of a record left bytes here, but no commit word.
    if (memory_.size() - position_ >= sizeof(Frame)) {
        store_commit(memory_.data() + position_, 0, std::memory_order_release);
    }
}

bool LogAppender::append(RecordType type, i64 time_us, std::span<const std::byte> payload,
                         std::span<const std::byte> tail, u64 keep_free_bytes) {
    const u64 payload_bytes = payload.size() + tail.size();
    if (payload_bytes > kMaxPayloadBytes) return false;
    const u64 size = frame_bytes(payload_bytes);
    const u64 left = memory_.size() - position_;
    if (left < keep_free_bytes || left - keep_free_bytes < size) return false;

    std::byte* at = memory_.data() + position_;
    Frame frame{0, time_us, static_cast<u32>(payload_bytes), static_cast<std::uint16_t>(type), 0,
                0, 0};
    const u64 seq = seq_ + 1;
    frame.crc = frame_crc(frame, seq, log_id_, payload, tail);
    std::memcpy(at + sizeof(u64), reinterpret_cast<const std::byte*>(&frame) + sizeof(u64),
                sizeof(Frame) - sizeof(u64));
    std::byte* body = at + sizeof(Frame);
    if (!payload.empty()) std::memcpy(body, payload.data(), payload.size());
    if (!tail.empty()) std::memcpy(body + payload.size(), tail.data(), tail.size());
    std::memset(body + payload_bytes, 0, size - sizeof(Frame) - payload_bytes);
    // The frame after this one must read as empty, whatever an earlier, torn record left there.
    if (left - size >= sizeof(Frame)) store_commit(at + size, 0, std::memory_order_relaxed);
    store_commit(at, seq, std::memory_order_release);
    seq_ = seq;
    position_ += size;
    return true;
}

}  // namespace oomlab::trace
