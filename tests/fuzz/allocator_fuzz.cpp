// The allocator's settings against any text, and the allocator against any sequence of calls, on a
// driver that fails wherever the input says. First line: settings; then two bytes an operation.
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/device/faulty_device.hpp"
#include "kernels/sim/sim_device.hpp"
#include "labs/server/memory/caching_allocator.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace oomlab;

namespace {

constexpr u64 kCapacity = kGiB;
constexpr std::size_t kMaxOperations = 300;

// Sizes from one byte to beyond the device, the borders of the rules among them.
u64 size_of(std::uint8_t b) {
    static constexpr u64 kBorders[] = {1,         512,           513,       kMiB,
                                       kMiB + 1,  10 * kMiB - 1, 10 * kMiB, 11 * kMiB,
                                       20 * kMiB, 200 * kMiB,    kCapacity, u64{1} << 60};
    if (b < std::size(kBorders)) return kBorders[b];
    return (u64{1} << (b % 29)) + b * 997;
}

struct Rig {
    explicit Rig(const AllocConf& conf)
        : device(open_sim_device(plain_sim_profile(kCapacity))),
          allocator(std::make_unique<CachingAllocator>(device, conf)) {
        OOMLAB_CHECK(device.streams().create_stream().has_value());
    }

    void step(std::uint8_t op, std::uint8_t arg) {
        switch (op % 16) {
            case 0:
            case 1:
            case 2:
            case 3:
            case 4: {
                auto a = allocator->malloc(size_of(arg), op / 16 % 2, static_cast<Owner>(op % 7));
                if (a && a->address != 0) live.push_back(a->address);
                if (!a) OOMLAB_CHECK(oom_message(a.error()).find("CUDA") != std::string::npos);
                break;
            }
            case 5:
            case 6:
            case 7:
            case 8:
                if (live.empty()) break;
                std::swap(live[arg % live.size()], live.back());
                allocator->free(live.back());
                live.pop_back();
                break;
            case 9:
                if (!live.empty()) allocator->record_stream(live[arg % live.size()], arg % 2);
                break;
            case 10:
                (void)device.ops().account({.flops = 1e9});
                break;
            case 11:
                (void)device.end_step();
                break;
            case 12:
                allocator->empty_cache();
                break;
            case 13:
                allocator->set_per_process_memory_fraction(arg / 255.0);
                break;
            case 14:
                if (capturing) {
                    allocator->end_capture();
                } else {
                    allocator->begin_capture(arg % 3);
                }
                capturing = !capturing;
                if (arg > 200) allocator->release_private_pool(arg % 3);
                break;
            default:
                device.clear_faults();
                device.plant(CallFault{.call = CallFault::kAnyCall,
                                       .nth = 1 + arg % 8u,
                                       .times = arg / 128u,
                                       .code = arg % 3 == 0 ? DeviceErrc::invalid_value
                                                            : DeviceErrc::memory_allocation});
        }
        OOMLAB_CHECK(allocator->check_invariants().empty());
    }

    // Whatever happened: with a driver that works again, everything goes back.
    void close() {
        device.clear_faults();
        if (capturing) allocator->end_capture();
        for (const u64 address : live) allocator->free(address);
        for (const u32 pool : {1u, 2u}) allocator->release_private_pool(pool);
        OOMLAB_CHECK(device.end_step().has_value());
        allocator->empty_cache();
        OOMLAB_CHECK(allocator->check_invariants().empty());
        OOMLAB_CHECK(allocator->memory_reserved() == 0 && allocator->memory_allocated() == 0);
        allocator.reset();
        OOMLAB_CHECK(device.memory().mem_info()->free_bytes == kCapacity);
    }

    FaultyDevice device;
    std::unique_ptr<CachingAllocator> allocator;
    std::vector<u64> live;
    bool capturing = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string_view settings = text.substr(0, text.find('\n'));
    const auto conf = parse_alloc_conf(settings);
    if (!conf) {
        for (const char c : conf.error().message) OOMLAB_CHECK(c >= 0x20 && c <= 0x7e);
    }
    Rig rig(conf ? *conf : AllocConf{});
    const std::string_view operations =
        text.substr(std::min(text.size(), settings.size() + 1), 2 * kMaxOperations);
    for (std::size_t i = 0; i + 1 < operations.size(); i += 2) {
        rig.step(static_cast<std::uint8_t>(operations[i]),
                 static_cast<std::uint8_t>(operations[i + 1]));
    }
    rig.close();
    return 0;
}
