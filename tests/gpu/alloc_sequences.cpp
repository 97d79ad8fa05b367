// Prints, as JSON, sequences of allocator requests with the figures that our allocator has after each
// step: the worked examples E1 to E13 and seeded random ones. tests/gpu/torch_parity.py plays them to
// PyTorch's allocator and compares. Needs no GPU: the figures come from the simulated chip.
//
//   oomlab-alloc-sequences [STEPS_OF_A_RANDOM_SEQUENCE]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/prng.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/server/memory/caching_allocator.hpp"

namespace oomlab {
namespace {

// "+a:1MiB" asks for a, "-a" frees it, "empty" is empty_cache().
struct Sequence {
    std::string name, conf;
    u64 cap_bytes;   // of the process, 0: none
    std::vector<std::string> steps;
};

std::vector<Sequence> worked_examples() {
    std::vector<Sequence> all = {
        {"E1 tiny", "", 0, {"+x:1B", "+y:513B", "-x", "-y", "empty"}},
        {"E2 the 1 MiB edge", "", 0, {"+a:1MiB", "+b:1MiB", "+c:1048577"}},
        {"E4 single allocations", "", 0,
         {"+a:9.5MiB", "-a", "empty", "+a:10485759", "-a", "empty", "+a:10MiB", "-a", "empty",
          "+a:10485761", "-a", "empty", "+a:10.5MiB", "-a", "empty", "+a:11533824", "-a", "empty",
          "+a:11MiB", "-a", "empty", "+a:12MiB", "-a", "empty", "+a:104857601"}},
        {"E5 reuse, split, coalesce", "", 0,
         {"+a:100MiB", "-a", "+b:60MiB", "+c:39.5MiB", "-b", "-c"}},
        {"E6 fragmentation", "", 300 * kMiB,
         {"+w:100MiB", "+a:100MiB", "-a", "+k:4MiB", "+x:150MiB", "-k", "+x:150MiB"}},
        {"E6 expandable", "expandable_segments:True", 300 * kMiB,
         {"+w:100MiB", "+a:100MiB", "-a", "+k:4MiB", "+x:150MiB"}},
        {"E7 expandable", "expandable_segments:True", 0,
         {"+a:12MiB", "+b:9MiB", "-a", "-b", "empty", "+a:50MiB", "+k:2MiB", "+b:50MiB", "-a", "-b",
          "empty"}},
        {"E8 max_split_size_mb", "max_split_size_mb:200", 0,
         {"+a:256MiB", "-a", "+b:100MiB", "-b", "+c:250MiB", "-c", "+d:236MiB", "+e:247464448"}},
        {"E9 roundup_power2_divisions", "roundup_power2_divisions:4", 0,
         {"+a:1228800", "+b:5MiB", "+c:9MiB", "+d:33MiB"}},
        {"E10 a retry", "", 100 * kMiB, {"+a:60MiB", "-a", "+b:80MiB"}},
        {"E11 small pool", "", 0,
         {"+a:0.75MiB", "+b:0.75MiB", "+c:0.75MiB", "+d:0.75MiB", "-a", "-b", "-c", "empty", "-d",
          "empty"}},
        {"E13 a cap", "", 50 * kMiB, {"+a:40MiB", "-a", "+b:48MiB", "+c:1.5MiB"}}};
    Sequence e3{"E3 filling a segment", "", 0, {}};
    for (int i = 0; i < 14; ++i) e3.steps.push_back(fmt::format("+a{}:1.5MiB", i));
    all.push_back(e3);
    for (const char* conf : {"", "expandable_segments:True"}) {
        Sequence e12{"E12 a growing buffer", conf, 512 * kMiB, {}};
        const char* sizes[] = {"100MiB", "110MiB", "121MiB", "133.1MiB", "146.41MiB", "161.051MiB"};
        for (int i = 0; i < 6; ++i) {
            e12.steps.push_back(fmt::format("+k{}:{}", i, sizes[i]));
            if (i > 0) e12.steps.push_back(fmt::format("-k{}", i - 1));
        }
        all.push_back(e12);
    }
    return all;
}

// Sizes do not repeat, so that two free blocks are rarely of one size (a tie falls by address).
Sequence random_sequence(u64 seed, const char* conf, u64 steps) {
    Sequence s{fmt::format("random {} {}", seed, conf), conf, 0, {}};
    Prng prng(seed);
    std::vector<u64> live;
    for (u64 i = 0; i < steps; ++i) {
        if (!live.empty() && prng.chance(0.49)) {
            const u64 victim = prng.below(live.size());
            s.steps.push_back(fmt::format("-r{}", live[victim]));
            live.erase(live.begin() + static_cast<i64>(victim));
        } else {
            const u64 units = prng.chance(0.5) ? prng.below(2000) : prng.below(60000);
            s.steps.push_back(fmt::format("+r{}:{}", i, 512 * (units + 1) - prng.below(511)));
            live.push_back(i);
        }
    }
    return s;
}

std::string play(const Sequence& s) {
    constexpr u64 kTotal = 80 * kGiB;
    auto device = open_sim_device(plain_sim_profile(kTotal));
    CachingAllocator allocator(*device, *parse_alloc_conf(s.conf));
    if (s.cap_bytes != 0) {
        allocator.set_per_process_memory_fraction(static_cast<double>(s.cap_bytes) / kTotal);
    }
    std::map<std::string, u64> addresses;
    std::string steps;
    for (const std::string& step : s.steps) {
        std::string what;
        bool refused = false;
        if (step == "empty") {
            allocator.empty_cache();
            what = R"("op":"empty")";
        } else if (step[0] == '-') {
            allocator.free(addresses[step.substr(1)]);
            what = fmt::format(R"("op":"free","id":"{}")", step.substr(1));
        } else {
            const std::size_t colon = step.find(':');
            const std::string id = step.substr(1, colon - 1);
            const u64 bytes = *parse_bytes(step.substr(colon + 1));
            const auto block = allocator.malloc(bytes);
            refused = !block.has_value();
            addresses[id] = block.has_value() ? block->address : 0;
            what = fmt::format(R"("op":"malloc","id":"{}","bytes":{})", id, bytes);
        }
        const AllocatorStats& st = allocator.stats();
        steps += fmt::format(
            R"({}{{{},"oom":{},"allocated":{},"reserved":{},"segments":{},"inactive_split":{},"retries":{},"ooms":{}}})",
            steps.empty() ? "" : ",\n", what, refused, allocator.memory_allocated(),
            allocator.memory_reserved(), st.segment[kStatAll].current,
            st.inactive_split_bytes[kStatAll].current, st.num_alloc_retries, st.num_ooms);
    }
    return fmt::format("{{\"name\":\"{}\",\"conf\":\"{}\",\"cap_bytes\":{},\"steps\":[\n{}]}}", s.name,
                       s.conf, s.cap_bytes, steps);
}

}  // namespace
}  // namespace oomlab

int main(int argc, char** argv) {
    using namespace oomlab;
    const u64 steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500;
    std::vector<Sequence> all = worked_examples();
    for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:24",
                             "roundup_power2_divisions:4"}) {
        for (const u64 seed : {1u, 2u, 3u}) all.push_back(random_sequence(seed, conf, steps));
    }
    std::string out;
    for (const Sequence& s : all) out += (out.empty() ? "" : ",\n") + play(s);
    std::printf("[%s]\n", out.c_str());
    return 0;
}
