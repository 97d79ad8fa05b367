// The parts of the verdict, a file each. Internal to labs/diagnosis.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "labs/diagnosis/six_types.hpp"

namespace oomlab::diagnosis {

inline u64 minus(u64 a, u64 b) { return a - std::min(a, b); }
inline std::size_t index(Owner o) { return static_cast<std::size_t>(o); }
// An owner's name, or "unknown" for a number that a forged trace may hold.
inline std::string_view name_of(Owner o) { return index(o) < kOwners ? owner_name(o) : std::string_view("unknown"); }
// A rate as bytes: never below 0, never more than fits.
inline u64 whole_bytes(double bytes) { return bytes > 0 && bytes < 1e18 ? static_cast<u64>(bytes) : 0; }

// One failure with what surrounds it.
struct Case {
    const RunFacts& facts;
    const FailureFacts& failure;
    const Life& life;
    const trace::FailureRecord& f;
    u64 asked_bytes = 0, available_bytes = 0, short_by_bytes = 0;
    // What the failing step held, without what stays between steps.
    u64 step_activation_bytes = 0;

    bool memory() const {
        return f.kind == trace::FailureKind::allocator_oom || f.kind == trace::FailureKind::device_oom;
    }
    bool refused() const { return f.kind == trace::FailureKind::refused; }
    u64 owned(Owner o) const { return f.owner_bytes[index(o)]; }
    u64 gap_bytes() const { return minus(f.reserved_bytes, f.allocated_bytes); }
    u64 others_bytes() const { return std::max(f.other_processes_bytes, owned(Owner::other_processes)); }
};
Case case_of(const RunFacts& facts, const FailureFacts& failure);

void judge_host_kill(const RunFacts& facts, Diagnosis& d);                 // 5
bool not_memory(const Case& c, Diagnosis& d);                              // 6: true when it is
void judge_at_load(const Case& c, Diagnosis& d);                           // 1
void judge_growth(const Case& c, const Growth& growth, Diagnosis& d);      // 4
void judge_spike(const Case& c, Diagnosis& d);                             // 2
void judge_under_load(const Case& c, Diagnosis& d);                        // 3
void add_remedies(const Case& c, Diagnosis& d);

}  // namespace oomlab::diagnosis
