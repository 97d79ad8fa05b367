// Reads a trace, live or finished, whole or cut. Trusts nothing: every record is checked (sequence,
// size, checksum) before it is shown; the first one that does not hold ends the log.
//
// poll() reads on from where it stopped, so a live file costs what is new. Memory is bounded: the
// file is mapped, records are views into it. Not thread safe; any number of readers of one file.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::trace {

struct RecordView {
    RecordType type = RecordType::none;
    u64 seq = 0;
    i64 time_us = 0;      // virtual part: the device's clock; wall log: microseconds of the wall
    std::span<const std::byte> payload;   // struct and tail together

    // The struct at the front. Empty when the payload is shorter than it.
    template <class Record>
    std::optional<Record> as() const {
        if (payload.size() < sizeof(Record)) return std::nullopt;
        Record r;
        std::memcpy(&r, payload.data(), sizeof(Record));
        return r;
    }
    template <class Record>
    std::span<const std::byte> tail_after() const {
        return payload.size() < sizeof(Record) ? std::span<const std::byte>{}
                                               : payload.subspan(sizeof(Record));
    }
    std::string_view text() const {
        return {reinterpret_cast<const char*>(payload.data()), payload.size()};
    }
};

class Reader {
  public:
    // On failure: Error::io (missing) or Error::parse (foreign file, other version), one line.
    static Result<std::unique_ptr<Reader>> open(const std::string& path);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Hands on every record of the virtual log that is new since the last call, in order.
    // Returns how many.
    std::size_t poll(const std::function<void(const RecordView&)>& each);
    // All records of the wall log that are whole.
    void wall(const std::function<void(const RecordView&)>& each) const;
    // The ring, oldest first, torn slots left out.
    std::vector<RingOp> ring() const;

    u64 bytes_read() const;
    bool finished() const;   // a finish record was seen, or the supervisor closed the file
    u64 dropped() const;     // samples and maps the writer could not keep
    u64 lost() const;        // records that are always kept, and for which even the reserve was full
    // Why the log ends before the file says it should ("" when all is well): one line for people.
    std::string damage() const;

  private:
    struct State;
    explicit Reader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace oomlab::trace
