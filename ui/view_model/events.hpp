// The event list: one small fixed struct an event, so that a million of them are 40 MiB.
//
// Memory is bounded: at most kMostEvents; beyond that completions and first tokens of ordinary
// requests are counted and not listed. Phases, failures, retries, preemptions, rejections always are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/device/owner.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::view {

enum class EventKind : std::uint8_t {
    phase, arrival, admission, first_token, completion, rejection, preemption, cancelled,
    request_failed, segment_alloc, segment_free, retry, failure, outside, budget, log, summary,
    action, finish, process, control, evidence,
    count_
};
const char* event_kind_name(EventKind kind);   // "preemption"

// What the filter's buttons switch.
enum class EventGroup : std::uint8_t { phases, requests, preemptions, allocator, failures, talk, count_ };
EventGroup event_group(EventKind kind);
const char* event_group_name(EventGroup group);

struct Event {
    i64 time_us = 0;
    u64 bytes = 0;        // asked, moved or held; 0 where the kind has none
    u64 after_bytes = 0;  // reserved after a segment operation; largest hole of a failure
    u32 request = trace::kNoRequest;
    u32 detail = 0;       // failure or text: its number in the model's table; requests: prompt tokens
    EventKind kind = EventKind::phase;
    Owner owner = Owner::unattributed;
    std::uint16_t code = 0;   // phase, HTTP status, or 1 for "succeeded"
    u32 extra = 0;            // KV blocks
};
static_assert(sizeof(Event) == 40);

inline constexpr std::size_t kMostEvents = 4'000'000;

// A filter as typed: words that must all match. `req:17`, `owner:kv`, `>1GiB`, else a part of the
// kind's name ("preempt"). Unknown words match nothing, and that is said by `hidden`.
class EventFilter {
  public:
    u32 groups = ~0u;   // bit by EventGroup

    // Returns false when a word could not be understood; `problem` says which.
    bool set_text(std::string_view text);
    const std::string& text() const { return text_; }
    const std::string& problem() const { return problem_; }
    bool matches(const Event& event) const;
    bool everything() const { return groups == ~0u && text_.empty(); }

  private:
    std::string text_, problem_;
    u32 request_ = trace::kNoRequest;
    int owner_ = -1;
    u64 bytes_above_ = 0;
    u32 kinds_ = ~0u;
};

}  // namespace oomlab::view
