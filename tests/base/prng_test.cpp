#include <doctest/doctest.h>

#include <cmath>

#include "kernels/base/prng.hpp"

using oomlab::Prng;

TEST_CASE("prng: a child stream does not depend on draws from the parent") {
    Prng a(7), b(7);
    for (int i = 0; i < 100; ++i) a.next();
    CHECK(a.fork("arrivals").next() == b.fork("arrivals").next());
    CHECK(b.fork("arrivals").next() != b.fork("lengths").next());
}

// Mean 858 and cv 1.1 by definition; the standard error of the mean of 200,000 draws is 2.1.
TEST_CASE("prng: lognormal has the mean and spread it is asked for") {
    Prng prng(301);
    const int n = 200000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
        const double x = prng.lognormal(858, 1.1);
        sum += x;
        squares += x * x;
    }
    const double mean = sum / n;
    CHECK(std::abs(mean - 858) < 4 * 2.1);
    const double cv = std::sqrt(squares / n - mean * mean) / mean;
    CHECK(std::abs(cv - 1.1) < 0.05);
}

TEST_CASE("prng: below covers its range evenly") {
    Prng prng(9);
    int counts[6] = {};
    for (int i = 0; i < 60000; ++i) counts[prng.below(6)]++;
    // Five standard deviations of a binomial(60000, 1/6): 456.
    for (const int c : counts) CHECK(std::abs(c - 10000) < 457);
}
