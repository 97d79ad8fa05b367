// The terminal's picture: every byte of the card is somewhere, letters tell owners apart without
// colour, and nothing is wider than the terminal.
#include <doctest/doctest.h>

#include <algorithm>

#include "ui/term/screen.hpp"

using namespace oomlab;
using namespace oomlab::term;
using namespace oomlab::literals;

namespace {
Frame frame() {
    Frame f;
    f.name = "type2-l4";
    f.device = "NVIDIA L4";
    f.phase = trace::Phase::serving;
    f.total_bytes = 20_GiB;
    f.owner_bytes[static_cast<std::size_t>(Owner::context)] = 1_GiB;
    f.owner_bytes[static_cast<std::size_t>(Owner::weights)] = 10_GiB;
    f.owner_bytes[static_cast<std::size_t>(Owner::kv)] = 4_GiB;
    f.owner_bytes[static_cast<std::size_t>(Owner::activations)] = 1_GiB;
    f.used_bytes = 16_GiB;
    f.kv_used = 50;
    f.kv_total = 100;
    f.received = 12;
    return f;
}
}  // namespace

TEST_SUITE("screen") {

TEST_CASE("bar: twenty cells of one GiB each") { CHECK(memory_bar(frame(), 20) == "CWWWWWWWWWWKKkkA...."); }

TEST_CASE("bar: any width adds up, and more than the card is drawn to its own sum") {
    Frame f = frame();
    for (std::size_t cells = 1; cells < 200; ++cells) CHECK(memory_bar(f, cells).size() == cells);
    f.total_bytes = 1_GiB;
    CHECK(memory_bar(f, 16).find('.') == std::string::npos);
    CHECK(memory_bar(Frame{}, 10) == "..........");
}

TEST_CASE("letters: one for each owner, none twice") {
    std::string letters;
    for (std::size_t o = 0; o < kOwners; ++o) letters.push_back(owner_letter(static_cast<Owner>(o)));
    std::sort(letters.begin(), letters.end());
    CHECK(std::adjacent_find(letters.begin(), letters.end()) == letters.end());
}

TEST_CASE("picture: no line is wider than the terminal, and without colour no escape is in it") {
    for (const std::size_t width : {20u, 40u, 80u, 200u}) {
        for (const std::string& line : draw(frame(), {width, false, false})) {
            CHECK(line.size() <= width);
            CHECK(line.find('\033') == std::string::npos);
        }
    }
    CHECK(draw(frame(), {80, true, false})[1].find("\033[") != std::string::npos);
}

TEST_CASE("picture: says simulated, the phase, the KV use and the headroom") {
    std::string all;
    for (const std::string& line : draw(frame(), {120, false, false})) all += line + "\n";
    for (const char* words : {"[simulated]", "serving", "KV 50%", "4 GiB headroom", "W weights 10 GiB", "done 0/12"}) {
        CHECK_MESSAGE(all.find(words) != std::string::npos, words);
    }
}

}  // TEST_SUITE
