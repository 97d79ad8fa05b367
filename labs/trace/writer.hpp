// The server's end of the black box: appends records to a memory-mapped file that another process
// made, sized and touched beforehand. What append() returned from is readable after SIGKILL at any
// moment: payload first, checksum, then the commit word with release order. Nothing is ever moved.
//
// Layout: 4 KiB header | virtual log | wall log | ring of RingOp. Offsets stand in the header.
// When the virtual log is full, samples and maps are dropped and counted, never phases, requests or
// failures (a reserve is kept for them).
//
// One writing process, one thread for the virtual part. Cheap: no system call, no allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::trace {

struct FileSizes {
    u64 virtual_log_bytes = 56 * kMiB;
    u64 wall_log_bytes = 2 * kMiB;
};

// Makes and pre-allocates the file (posix_fallocate, then touches it), so that a full disk is an
// error here and not a SIGBUS later. On failure no file is left. Called by the supervisor.
Result<void> create_trace_file(const std::string& path, const FileSizes& sizes = {});

class Writer {
  public:
    // Opens a file made by create_trace_file. On failure: Error::io.
    static Result<std::unique_ptr<Writer>> open(const std::string& path);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Appends one record of the virtual part. Returns false when it was dropped (log full).
    bool append(RecordType type, i64 time_us, std::span<const std::byte> payload,
                std::span<const std::byte> tail = {});
    template <class Record>
    bool append(RecordType type, i64 time_us, const Record& record, std::string_view tail = {}) {
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

    // The ring. `op.seq` is set here.
    void ring(RingOp op);

    u64 dropped() const;
    u64 virtual_bytes_used() const;
    u64 virtual_bytes_capacity() const;

  private:
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Cuts the unused middle out of a finished file, so that an hour's trace takes what it holds.
// Called by the supervisor after the server's death. The content does not change.
Result<void> compact_trace_file(const std::string& path);

// The supervisor's own appends after the server's death (evidence).
Result<void> append_evidence(const std::string& path, i64 wall_us, std::string_view json);

}  // namespace oomlab::trace
