// One log of a trace, over plain memory: the side that appends and the side that reads. Internal to
// labs/trace. The two meet in the commit words alone, so each may live in its own process or thread.
#pragma once

#include <cstddef>
#include <span>

#include "labs/trace/layout.hpp"
#include "labs/trace/reader.hpp"

namespace oomlab::trace {

// The checksum that a frame must hold: over the frame (commit taken as `seq`, crc as 0) and its payload
// in two parts.
u32 frame_crc(Frame frame, u64 seq, u32 log_id, std::span<const std::byte> payload,
              std::span<const std::byte> tail);

// Reads frames from the front. Trusts nothing: number, size and checksum are checked before a record
// is shown. Not thread safe; does not own the memory.
class LogCursor {
  public:
    LogCursor() = default;
    LogCursor(std::span<const std::byte> memory, u32 log_id) : memory_(memory), log_id_(log_id) {}

    // The next whole record, or nothing: the end so far, or the first frame that does not hold.
    std::optional<RecordView> next();

    u64 position() const { return position_; }
    u64 records() const { return seq_; }
    // A frame was found that cannot be right. What stands after it is not shown.
    bool damaged() const { return damaged_; }
    // The file turned out shorter: nothing beyond `bytes` may be touched any more.
    void limit(u64 bytes) { memory_ = memory_.first(std::min<std::size_t>(memory_.size(), bytes)); }

  private:
    std::span<const std::byte> memory_;
    u64 position_ = 0, seq_ = 0;
    u32 log_id_ = 0;
    bool damaged_ = false;
};

// Appends frames behind those that are there. One thread at a time; does not own the memory.
class LogAppender {
  public:
    LogAppender() = default;
    // Continues after `end`, which has read the log to its end.
    LogAppender(std::span<std::byte> memory, u32 log_id, const LogCursor& end);

    // False, and nothing is written, when the frame would end beyond `keep_free_bytes` before the
    // log's end, or is larger than a record may be.
    bool append(RecordType type, i64 time_us, std::span<const std::byte> payload,
                std::span<const std::byte> tail, u64 keep_free_bytes);

    u64 used_bytes() const { return position_; }
    u64 capacity_bytes() const { return memory_.size(); }

  private:
    std::span<std::byte> memory_;
    u64 position_ = 0, seq_ = 0;
    u32 log_id_ = 0;
};

}  // namespace oomlab::trace
