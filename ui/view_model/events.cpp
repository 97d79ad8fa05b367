#include "ui/view_model/events.hpp"

#include <array>
#include <charconv>

namespace oomlab::view {
namespace {

constexpr std::size_t kKinds = static_cast<std::size_t>(EventKind::count_);
constexpr std::array<const char*, kKinds> kKindNames = {
    "phase", "arrival", "admission", "first token", "completion", "rejection", "preemption",
    "cancelled", "request failed", "segment alloc", "segment free", "retry", "failure", "outside",
    "budget", "log", "summary", "action", "finish", "process", "control", "evidence"};
static_assert(kKinds <= 32, "the filter keeps kinds in 32 bits");

}  // namespace

const char* event_kind_name(EventKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

EventGroup event_group(EventKind kind) {
    switch (kind) {
        case EventKind::phase:
        case EventKind::budget:
        case EventKind::finish: return EventGroup::phases;
        case EventKind::arrival:
        case EventKind::admission:
        case EventKind::first_token:
        case EventKind::completion:
        case EventKind::cancelled: return EventGroup::requests;
        case EventKind::preemption: return EventGroup::preemptions;
        case EventKind::segment_alloc:
        case EventKind::segment_free:
        case EventKind::retry:
        case EventKind::outside: return EventGroup::allocator;
        case EventKind::rejection:
        case EventKind::request_failed:
        case EventKind::failure:
        case EventKind::process:
        case EventKind::evidence: return EventGroup::failures;
        case EventKind::log:
        case EventKind::summary:
        case EventKind::action:
        case EventKind::control:
        case EventKind::count_: break;
    }
    return EventGroup::talk;
}

const char* event_group_name(EventGroup group) {
    switch (group) {
        case EventGroup::phases: return "phases";
        case EventGroup::requests: return "requests";
        case EventGroup::preemptions: return "preemptions";
        case EventGroup::allocator: return "allocator";
        case EventGroup::failures: return "failures";
        case EventGroup::talk:
        case EventGroup::count_: break;
    }
    return "log";
}

bool EventFilter::set_text(std::string_view text) {
    text_ = text;
    problem_.clear();
    request_ = trace::kNoRequest;
    owner_ = -1;
    bytes_above_ = 0;
    kinds_ = ~0u;
    while (!text.empty()) {
        const std::size_t space = text.find(' ');
        const std::string_view word = text.substr(0, space);
        text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
        if (word.empty()) continue;
        if (word.starts_with("req:")) {
            const std::string_view number = word.substr(4);
            const auto [end, ec] =
                std::from_chars(number.data(), number.data() + number.size(), request_);
            if (ec != std::errc() || end != number.data() + number.size())
                problem_ = "req: takes a request's number, as in req:17";
        } else if (word.starts_with("owner:")) {
            for (std::size_t o = 0; o < kOwners; ++o)
                if (kOwnerNames[o].starts_with(word.substr(6)) && owner_ < 0)
                    owner_ = static_cast<int>(o);
            if (owner_ < 0) problem_ = "no owner of that name";
        } else if (word.front() == '>') {
            const auto size = parse_bytes(word.substr(1));
            if (size) bytes_above_ = *size;
            else problem_ = "> takes a size, as in >512MiB";
        } else {
            u32 kinds = 0;
            for (std::size_t k = 0; k < kKinds; ++k)
                if (std::string_view(kKindNames[k]).find(word) != std::string_view::npos)
                    kinds |= 1u << k;
            if (kinds == 0) problem_ = "no kind of event has that in its name";
            kinds_ &= kinds;
        }
    }
    return problem_.empty();
}

bool EventFilter::matches(const Event& event) const {
    if ((groups >> static_cast<u32>(event_group(event.kind)) & 1u) == 0) return false;
    if (!problem_.empty()) return false;
    if ((kinds_ >> static_cast<u32>(event.kind) & 1u) == 0) return false;
    if (request_ != trace::kNoRequest && event.request != request_) return false;
    if (owner_ >= 0 && event.owner != static_cast<Owner>(owner_)) return false;
    return bytes_above_ == 0 || event.bytes > bytes_above_;
}

}  // namespace oomlab::view
