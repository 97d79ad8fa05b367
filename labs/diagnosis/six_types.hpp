// Which of the six types a failure is, why, what it is not, and what would have made it fit.
//
// The order is the contract's, the first that holds decides:
//   the kernel's kill -> 5 | a sticky or non-memory fault -> 6 | before serving -> 1 | a floor of
//   allocated, of the gap, or of what is outside rose over completed requests -> 4 | the failing
//   activation is larger than the profiled one -> 2 | else 3
// A growth counts when the request would have fitted without it. Causes are those of the field's
// list (weights_exceed_memory, ...). Pure function of the facts: no scenario, no fault, no file.
#pragma once

#include <string>
#include <vector>

#include "labs/diagnosis/run_facts.hpp"

namespace oomlab::diagnosis {

enum class Growing { nothing, allocated, gap, outside };
const char* growing_name(Growing what);   // "allocated", "reserved - allocated", ...

struct Growth {
    Growing what = Growing::nothing;
    Rise rise;
    Owner owner = Owner::unattributed;    // which owner grew most, for allocated and outside
    // How memory of ended requests is held, where a block map shows it: "every request",
    // "a share of the requests", "cancelled requests only", "no request"; empty: not seen.
    std::string pattern;
    u64 retained_bytes = 0, retained_requests = 0;
    bool sized_by_prompt = false;         // what is kept is proportional to the prompt
};

struct Remedy {
    std::string what;         // "bound each step to what was profiled (enable_chunked_prefill = true)"
    u64 bytes = 0;            // what it gives
    bool enough = false;      // alone it would have made this fit
};

struct Diagnosis {
    int type = 0;                          // 1..6; 0: nothing failed, or nothing is proven
    std::string cause;                     // id; empty with type 0
    double confidence = 0;                 // 0..1
    std::string summary;                   // one sentence, bytes first
    std::vector<std::string> evidence;     // each with its figures
    std::vector<std::string> ruled_out;    // the types before it in the order, and why not
    std::vector<Remedy> remedies;          // what would have made it fit, most bytes first
    u64 short_by_bytes = 0;
    Growth growth;                         // also of a run that did not fail
    // A watcher of ours killed at the limit: practice for this type, and no proof of it. 0: none.
    int stand_in_for = 0;
};

const char* type_title(int type);   // "does not fit at load", ...

// The run's first failure (the one its exit status is about), or the kill, or nothing.
Diagnosis diagnose(const RunFacts& facts);
// One failure of several. REQUIRES: index < facts.failures.size().
Diagnosis diagnose_failure(const RunFacts& facts, std::size_t index);

// What grew in a life, by the floor rule and by the last block map. `short_by_bytes`: growth smaller
// than that explains nothing; 0 takes any.
Growth growth_of(const Life& life, u64 short_by_bytes);

}  // namespace oomlab::diagnosis
