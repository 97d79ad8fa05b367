#include <doctest/doctest.h>

#include "ui/view_model/budget.hpp"

using namespace oomlab;
using namespace oomlab::view;

TEST_CASE("prediction: sizes as text and as numbers, top level and tables") {
    const auto p = parse_prediction(
        "weights = \"15 GiB\"\nkv_bytes = 1024\nnote = \"hello\"\n[owners]\nactivations = \"512MiB\"\n",
        "guess.toml");
    REQUIRE(p);
    CHECK(p->owner_bytes[static_cast<std::size_t>(Owner::weights)] == 15 * kGiB);
    CHECK(p->owner_bytes[static_cast<std::size_t>(Owner::kv)] == 1024);
    CHECK(p->owner_bytes[static_cast<std::size_t>(Owner::activations)] == 512 * kMiB);
    CHECK(p->sum_bytes() == 15 * kGiB + 512 * kMiB + 1024);
}

TEST_CASE("prediction: a table by an owner's name, as the budget's exercise writes it") {
    const auto p = parse_prediction("[weights]\nsize = \"15 GiB\"\nwhy = \"bf16\"\n[kv]\nsize = \"\"\n", "budget.toml");
    REQUIRE(p);
    CHECK(p->owner_bytes[static_cast<std::size_t>(Owner::weights)] == 15 * kGiB);
    CHECK_FALSE(p->owner_bytes[static_cast<std::size_t>(Owner::kv)]);
    CHECK_FALSE(parse_prediction("[weights]\nsize = \"plenty\"\n", "budget.toml"));
}

TEST_CASE("prediction: a mistake names file, line and remedy") {
    const auto bad = parse_prediction("\nweights = \"a lot\"\n", "guess.toml");
    REQUIRE_FALSE(bad);
    CHECK(bad.error().message.find("guess.toml:2: weights") != std::string::npos);
    const auto broken = parse_prediction("weights = = 3", "guess.toml");
    REQUIRE_FALSE(broken);
    CHECK(broken.error().message.find("guess.toml:1") != std::string::npos);
    CHECK_FALSE(parse_prediction("weights = -4", "guess.toml"));
}

TEST_CASE("budget: error is measured minus predicted, line by line in the stack's order") {
    Prediction p;
    p.owner_bytes[static_cast<std::size_t>(Owner::weights)] = 10 * kGiB;
    std::array<u64, kOwners> measured{};
    measured[static_cast<std::size_t>(Owner::weights)] = 8 * kGiB;
    measured[static_cast<std::size_t>(Owner::context)] = kGiB;
    const auto lines = budget_lines(p, measured);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].owner == Owner::context);
    CHECK_FALSE(lines[0].predicted_bytes);
    CHECK(lines[1].error_bytes() == -2 * static_cast<i64>(kGiB));
    CHECK(lines[1].error_share() == doctest::Approx(-0.25));
}
