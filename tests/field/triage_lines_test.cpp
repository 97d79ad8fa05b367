// The scanner alone: numbers of lines, parts, colours, encodings; and what it hands out to a
// screen.
#include <doctest/doctest.h>

#include "labs/field/triage/facts.hpp"
#include "labs/field/triage/lines.hpp"

using namespace oomlab::triage;

namespace {
struct Seen {
    std::uint64_t number;
    std::string text;
};
std::vector<Seen> scan(std::string_view text, std::vector<std::string_view> literals,
                       std::size_t piece = 1 << 20) {
    const LiteralSet set(literals);
    std::vector<Seen> seen;
    LineScanner scanner(set, [&](const CandidateLine& line) {
        seen.push_back({line.number, std::string(line.text)});
    });
    scanner.begin();
    for (std::size_t at = 0; at < text.size(); at += piece) scanner.feed(text.substr(at, piece));
    scanner.end();
    return seen;
}
}  // namespace

TEST_CASE("literals: found in any case, at any place, also at the very end") {
    const LiteralSet set({"out of memory", "xid 13", "abcde"});
    CHECK(set.find_first("CUDA Out Of Memory", 0).found());
    // Whatever the parity of its place.
    for (const char* text : {"ABCDE", " ABCDE", "  abcde", "   aBcDe", "xxxxxxxxxxxxxxxxxabcde",
                             "xxxxxxxxxxxxxxxxxxabcde"})
        CHECK(set.find_first(text, 0).found());
    CHECK_FALSE(set.find_first("ABCD", 0).found());
    CHECK_FALSE(set.find_first("out of memor", 0).found());
    CHECK_FALSE(set.find_first("abcde", 1).found());
    std::vector<std::uint16_t> ids;
    set.find_all("xid 13 and out of memory, xid 31", ids);
    CHECK(ids == std::vector<std::uint16_t>{0, 1});
}

TEST_CASE("lines: numbers count from one whatever the pieces") {
    std::string text;
    for (int i = 1; i <= 5000; ++i)
        text += i % 1000 == 0 ? "needle here\n" : "some other line of a log\n";
    for (const std::size_t piece : {std::size_t{3}, std::size_t{1000}, text.size()}) {
        const auto seen = scan(text, {"needle"}, piece);
        REQUIRE(seen.size() == 5);
        CHECK(seen[0].number == 1000);
        CHECK(seen[4].number == 5000);
    }
}

TEST_CASE("lines: colours inside a word do not hide it and escapes do not survive") {
    const auto seen =
        scan("a\nout of \x1b[1;31mmem\x1b[0mory \x1b]0;title\a end\n", {"out of memory"});
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].number == 2);
    CHECK(seen[0].text == "out of memory  end");
}

TEST_CASE("lines: carriage returns and container JSON split a line and keep its number") {
    const auto bar = scan("10%\r50% needle\r100%\nnext\n", {"needle"});
    REQUIRE(bar.size() == 3);
    CHECK(bar[1].text == "50% needle");
    CHECK(bar[1].number == 1);
    const auto json =
        scan("x\n{\"log\":\"File \\\"a.py\\\"\\n\\u001b[31mneedle\\u001b[0m \\\"q\\\"\\n\"}\n",
             {"needle"});
    REQUIRE(json.size() >= 2);
    CHECK(json[1].text == "needle \"q\"");
    CHECK(json[1].number == 2);
}

TEST_CASE("lines: UTF-16 with its mark is read") {
    std::string text = "\xFF\xFE";
    for (const char c : std::string("one\nneedle\n")) {
        text.push_back(c);
        text.push_back('\0');
    }
    const auto seen = scan(text, {"needle"});
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].number == 2);
}

TEST_CASE("lines: a line of many mebibytes costs a window, not its length") {
    std::string text(6 << 20, 'x');
    text.replace(5 << 20, 6, "needle");
    text += "\nneedle two\n";
    const auto seen = scan(text, {"needle"}, 65536);
    REQUIRE(seen.size() >= 2);
    for (const auto& s : seen) CHECK(s.text.size() <= LineScanner::kLineMax);
    CHECK(seen.back().number == 2);
}

TEST_CASE("printable: nothing that moves a terminal gets through") {
    CHECK(printable("a\x1b[2Jb\x07\x7f", 100) == "a?[2Jb??");
    CHECK(printable("caf\xC3\xA9", 100) == "caf\xC3\xA9");
    CHECK(printable("\xC2\x9B"
                    "31m",
                    100) == "?31m");
    CHECK(printable("\xE2\x80\xAE"
                    "x",
                    100) == "?x");
    CHECK(printable("\xFF\xC3", 100) == "??");
    CHECK(printable(std::string(50, 'a'), 10).size() == 13);
}

namespace {
constexpr double kMiBd = 1048576.0;
constexpr double kGiBd = 1073741824.0;
}  // namespace

TEST_CASE("torch message: every form since 1.0 gives its figures") {
    const auto v1 = parse_torch_oom(
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.70 GiB "
        "already allocated; 11.69 MiB free; 200.50 MiB cached)",
        {});
    CHECK(v1.form == 1);
    CHECK(*v1.asked == 20 * kMiBd);
    CHECK(*v1.unallocated == 200.5 * kMiBd);
    const auto v2 = parse_torch_oom(
        "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 1; 10.00 GiB total "
        "capacity; 7.00 GiB already allocated; 512.00 MiB free; 8.00 GiB allowed; 7.50 GiB "
        "reserved in total by PyTorch)",
        {});
    CHECK(v2.form == 2);
    CHECK(*v2.allowed == 8 * kGiBd);
    CHECK(*v2.unallocated == 0.5 * kGiBd);
    const auto v4 = parse_torch_oom(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 23.69 GiB of "
        "which 1.00 GiB is free. Process 1 has 4.00 GiB memory in use. Including non-PyTorch "
        "memory, this process has 18.00 GiB memory in use. Of the allocated memory 16.00 GiB is "
        "allocated by PyTorch, with 100.00 MiB allocated in private pools (e.g., CUDA Graphs), and "
        "500.00 MiB is reserved by PyTorch but unallocated. If reserved",
        {});
    CHECK(v4.form == 4);
    CHECK(*v4.private_pools == 100 * kMiBd);
    CHECK(*v4.this_process == 18 * kGiBd);
    REQUIRE(v4.processes.size() == 1);
    CHECK(*v4.others() == doctest::Approx(4.69 * kGiBd));
    const auto v8 = parse_torch_oom(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        "per_process_memory_fraction limit. Requested size: 3.00 GiB",
        {});
    CHECK(v8.preemptive);
    CHECK(*v8.asked == 3 * kGiBd);
    CHECK(parse_torch_oom("CUDA out of memory. Tried to allocate more than 1EB memory.", {})
              .above_1eb);
    const auto v10 = parse_torch_oom(
        "Allocation on device 0 would exceed allowed memory. (out of memory)",
        "Currently allocated     : 6.20 GiB\nRequested               : 80.00 MiB\nDevice limit     "
        "       : 8.00 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied "
        "memory fraction)\n                        : 17179869184.00 GiB\n");
    CHECK(v10.form == 10);
    CHECK(*v10.total == 8 * kGiBd);
    CHECK_FALSE(v10.allowed.has_value());
    CHECK(parse_torch_oom(
              "HIP out of memory. Tried to allocate 16.00 MiB. GPU 0 has a total capacity of 63.98 "
              "GiB of which 0 bytes is free. Of the allocated memory 62.00 GiB is allocated by "
              "PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
              {})
              .form == 11);
    // Under Windows the figure of this process is 2^64-1: not a figure.
    CHECK_FALSE(parse_torch_oom(
                    "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of "
                    "8.00 GiB of which 0 bytes is free. Including non-PyTorch memory, this process "
                    "has 17179869184.00 GiB memory in use. Of the allocated memory 9.00 GiB is "
                    "allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
                    {})
                    .this_process.has_value());
    // Wrapped by a terminal: the figures stand on the next lines.
    const auto wrapped = parse_torch_oom(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a "
        "total",
        "capacity of 23.64 GiB of which 402.81 MiB is free. Process 38115 has 23.24 GiB memory\nin "
        "use. Of the allocated memory 20.86 GiB is allocated by PyTorch, and 211.50 MiB "
        "is\nreserved by PyTorch but unallocated.\n");
    CHECK(*wrapped.total == doctest::Approx(23.64 * kGiBd));
    CHECK(*wrapped.unallocated == 211.5 * kMiBd);
}
