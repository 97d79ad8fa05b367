// A cgroup of our own from the user's systemd: this program is started again inside a scope with
// Delegate=yes, once. Internal.
#pragma once

#include <string>

#include "kernels/base/result.hpp"
#include "labs/supervisor/cgroup.hpp"

namespace oomlab::supervisor {

// Why `systemd-run --user --scope` cannot help here; empty: it may be tried.
std::string scope_problem(const CgroupPlaces& places);
// Replaces this process. Returns only on failure. REQUIRES: scope_problem() was empty.
Error enter_scope();

}  // namespace oomlab::supervisor
