// What a fault of kind "drawn" stands for: a function of its seed, and nothing else says it. The
// server plants it; the grader compares a hand-in with it.
#pragma once

#include "labs/catalog/scenario.hpp"

namespace oomlab {

// Kind "healthy" when the draw is no fault at all. `hidden_size` scales the sizes with the model.
FaultSpec draw_fault(const FaultSpec& drawn, u64 hidden_size);

}  // namespace oomlab
