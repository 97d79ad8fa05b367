#include <doctest/doctest.h>

#include "ui/view_model/events.hpp"

using namespace oomlab;
using namespace oomlab::view;

namespace {
Event event(EventKind kind, u32 request, Owner owner, u64 bytes) {
    Event e;
    e.kind = kind;
    e.request = request;
    e.owner = owner;
    e.bytes = bytes;
    return e;
}
const Event kRetry = event(EventKind::retry, 17, Owner::activations, 3 * kGiB);
const Event kPreemption = event(EventKind::preemption, 4, Owner::kv, 0);
}  // namespace

TEST_CASE("filter: empty text lets everything through") {
    EventFilter filter;
    CHECK(filter.everything());
    CHECK(filter.matches(kRetry));
    CHECK(filter.matches(kPreemption));
}

TEST_CASE("filter: words must all match") {
    EventFilter filter;
    CHECK(filter.set_text("retry >1GiB owner:act"));
    CHECK(filter.matches(kRetry));
    CHECK_FALSE(filter.matches(kPreemption));
    CHECK(filter.set_text("req:4"));
    CHECK(filter.matches(kPreemption));
    CHECK_FALSE(filter.matches(kRetry));
}

TEST_CASE("filter: groups switch off whole kinds") {
    EventFilter filter;
    filter.groups &= ~(1u << static_cast<u32>(EventGroup::preemptions));
    CHECK_FALSE(filter.matches(kPreemption));
    CHECK(filter.matches(kRetry));
}

TEST_CASE("filter: a word that cannot be understood says why and matches nothing") {
    for (const char* text : {"req:abc", "req:", "owner:nobody", ">plenty", "gremlins"}) {
        EventFilter filter;
        CHECK_FALSE(filter.set_text(text));
        CHECK_FALSE(filter.problem().empty());
        CHECK_FALSE(filter.matches(kRetry));
    }
}

TEST_CASE("events: every kind has a name and a group") {
    for (std::size_t k = 0; k < static_cast<std::size_t>(EventKind::count_); ++k) {
        const auto kind = static_cast<EventKind>(k);
        CHECK(std::string(event_kind_name(kind)).size() > 2);
        CHECK(event_group(kind) < EventGroup::count_);
    }
}
