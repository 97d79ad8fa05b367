// The server's end of the black box: appends records to a memory-mapped file that another process
// made, sized and touched beforehand. What append() returned from is readable after SIGKILL at any
// moment: payload first, checksum, then the commit word with release order. Nothing is ever moved.
//
// Layout: 4 KiB header | virtual log | wall log | ring of RingOp. Offsets stand in the header.
// When the virtual log is full, samples, maps and lines of text are dropped and counted, never phases,
// requests, segment operations or failures (a reserve is kept for them, and a last one for failures,
// phases and the finish). A map that follows a failure at the same time is kept like one: append the
// failure first, then its maps.
//
// One writing process, one thread for the virtual part. Cheap: no system call, no allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/base/result.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::trace {

struct FileSizes {
    u64 virtual_log_bytes = 56 * kMiB;   // with the rest, an hour's trace stays under 64 MB
    u64 wall_log_bytes = 2 * kMiB;
};

// Makes and pre-allocates the file (posix_fallocate, then touches it), so that a full disk is an
// error here and not a SIGBUS later, and so that its pages are not charged to the server's cgroup.
// An older trace at that place is replaced (its readers keep it), any other file refused.
// On failure no file is left. Called by the supervisor.
Result<void> create_trace_file(const std::string& path, const FileSizes& sizes = {});

class Writer {
  public:
    // Opens a file made by create_trace_file and goes on behind what it holds (a server that was
    // restarted). On failure: Error::io or Error::parse; a compacted file is refused.
    static Result<std::unique_ptr<Writer>> open(const std::string& path);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Appends one record of the virtual part. Returns false when it was dropped (log full).
    bool append(RecordType type, i64 time_us, std::span<const std::byte> payload,
                std::span<const std::byte> tail = {});
    template <class Record>
    bool append(RecordType type, i64 time_us, const Record& record, std::string_view tail = {}) {
        static_assert(std::is_trivially_copyable_v<Record>);
        return append(type, time_us, std::as_bytes(std::span(&record, 1)),
                      std::as_bytes(std::span(tail.data(), tail.size())));
    }
    bool append_text(RecordType type, i64 time_us, std::string_view text) {
        return append(type, time_us, std::span<const std::byte>{},
                      std::as_bytes(std::span(text.data(), text.size())));
    }
    // Appends to the wall log (host samples, controls); safe beside append() from another thread.
    bool append_wall(RecordType type, i64 wall_us, std::span<const std::byte> payload,
                     std::span<const std::byte> tail = {});

    // The ring. `op.seq` is set here. Six stores: it is called for every allocation and free.
    // Same thread as append().
    void ring(const RingOp& op) {
        const u64 seq = ++ring_seq_;
        u64* slot = ring_ + ((seq - 1) % kRingOps) * kRingWords;
        // The number's lower half goes first, the whole of it last: in a slot that was cut short
        // the two differ, and readers leave it out.
        store(slot[5], u64{op.repeat} | seq << 32);
        store(slot[1], static_cast<u64>(op.time_us));
        store(slot[2], op.address);
        store(slot[3], op.bytes);
        store(slot[4], u64{op.request} | u64{op.op} << 32 |
                           u64{static_cast<unsigned char>(op.owner)} << 48 |
                           u64{static_cast<unsigned char>(op.kind)} << 56);
        store(slot[0], seq);
    }

    u64 dropped() const;
    u64 virtual_bytes_used() const;
    u64 virtual_bytes_capacity() const;

  private:
    static constexpr u64 kRingWords = sizeof(RingOp) / sizeof(u64);
    // Release on each word keeps their order for a reader in another process; free on x86.
    static void store(u64& word, u64 value) {
        std::atomic_ref<u64>(word).store(value, std::memory_order_release);
    }

    struct State;
    explicit Writer(std::unique_ptr<State> state);
    u64* ring_ = nullptr;
    u64 ring_seq_ = 0;
    std::unique_ptr<State> state_;
};

// Cuts the unused middle out of a finished file, so that an hour's trace takes what it holds, and
// closes it. Called by the supervisor after the server's death. The content does not change; on
// failure the file is as before.
Result<void> compact_trace_file(const std::string& path);

// The supervisor's own appends after the server's death (evidence); closes the file.
Result<void> append_evidence(const std::string& path, i64 wall_us, std::string_view json);

}  // namespace oomlab::trace
