// What people see when the server dies, and the one-line reason: composed here, once, from figures.
#pragma once

#include <string>

#include "labs/server/failure.hpp"

namespace oomlab::server {

// The line a log would end in: torch.OutOfMemoryError, RuntimeError: CUDA error, ValueError, ...
std::string failure_message(const Failure& failure, trace::Phase phase);
// Frames of the traceback that a reader looks for, by phase; empty where there is none.
std::string frames(const Failure& failure, trace::Phase phase);

}  // namespace oomlab::server
