// Checks for our own mistakes. They are always on, print file, line and the expression, and abort.
// Failures that may happen (out of memory, bad input) are Results, never checks.
#pragma once

namespace oomlab {
[[noreturn]] void check_failed(const char* file, int line, const char* expression);
}

#define OOMLAB_CHECK(expression) \
    ((expression) ? static_cast<void>(0) : ::oomlab::check_failed(__FILE__, __LINE__, #expression))

#define OOMLAB_UNREACHABLE(why) ::oomlab::check_failed(__FILE__, __LINE__, why)

#ifdef NDEBUG
#define OOMLAB_DCHECK(expression) static_cast<void>(0)
#else
#define OOMLAB_DCHECK(expression) OOMLAB_CHECK(expression)
#endif
