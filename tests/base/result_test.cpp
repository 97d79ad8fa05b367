#include <doctest/doctest.h>

#include "kernels/base/result.hpp"

using namespace oomlab;

namespace {
Result<int> half(int n) {
    if (n % 2 != 0) return fail(Error::usage("odd"));
    return n / 2;
}
Result<int> quarter(int n) {
    OOMLAB_TRY(h, half(n));
    OOMLAB_TRY(q, half(h));
    return q;
}
}  // namespace

TEST_CASE("result: early return hands on the first error") {
    CHECK(*quarter(12) == 3);
    CHECK_FALSE(quarter(6).has_value());
    CHECK(quarter(6).error().message == "odd");
    CHECK(exit_code(quarter(6).error()) == 2);
}

TEST_CASE("result: void results carry errors too") {
    const auto ok = Result<void>{};
    const Result<void> bad = fail(Error::environment("no GPU"));
    CHECK(ok.has_value());
    CHECK(exit_code(bad.error()) == 3);
}
