#include "kernels/cuda/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace oomlab {
namespace {

constexpr int kTimes = 20;
constexpr u64 kGraphKernels = 40, kGraphs = 4;
constexpr u64 kWidth = 14336;          // of the memory-bound op: three tensors of rows * width
constexpr u64 kRowsMax = 32768, kSideMax = 8192;

// Device memory that is given back.
class Buffer {
  public:
    static DeviceResult<Buffer> make(Device& device, u64 bytes) {
        OOMLAB_TRY(address, device.memory().malloc(bytes));
        return Buffer(device, address);
    }
    Buffer(Buffer&& other) noexcept : device_(other.device_), address_(other.address_) {
        other.address_ = 0;
    }
    Buffer& operator=(Buffer&&) = delete;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        // A device that no longer answers has lost the memory anyway.
        if (address_ != 0) (void)device_->memory().free(address_);
    }
    u64 address() const { return address_; }

  private:
    Buffer(Device& device, u64 address) : device_(&device), address_(address) {}
    Device* device_;
    u64 address_;
};

// Seconds of one step that does `work`, the shortest of kTimes; the first is not counted.
template <class Work>
DeviceResult<double> step_s(Device& device, Work&& work) {
    double shortest = 1e9;
    for (int i = 0; i <= kTimes; ++i) {
        const double start = device.now_s();
        OOMLAB_TRY_VOID(work());
        OOMLAB_TRY_VOID(device.end_step());
        if (i > 0) shortest = std::min(shortest, device.now_s() - start);
    }
    return shortest;
}

DeviceResult<void> measure_graphs(Device& device, CardProfile& profile) {
    OOMLAB_TRY(stream, device.streams().create_stream());
    OOMLAB_TRY(target, Buffer::make(device, kMiB));
    u64 last = 0;
    std::vector<GraphId> graphs;
    for (u64 g = 0; g < kGraphs; ++g) {
        const u64 before = device.graph_bytes();
        OOMLAB_TRY_VOID(device.graphs().begin_capture(stream));
        for (u64 i = 0; i < kGraphKernels; ++i) {
            OOMLAB_TRY_VOID(device.ops().fill(
                {.out = target.address(), .elements = 1024, .seed = i, .type = DType::f32}));
        }
        OOMLAB_TRY(graph, device.graphs().end_capture(stream));
        graphs.push_back(graph);
        last = device.graph_bytes() - before;
        if (g == 0) profile.graph_first_bytes = last;
    }
    profile.graph_each_bytes = last;
    for (const GraphId graph : graphs) OOMLAB_TRY_VOID(device.graphs().destroy_graph(graph));
    return device.streams().destroy_stream(stream);
}

DeviceResult<void> measure_rates(Device& device, CardProfile& profile) {
    const DType type = profile.has_bf16 ? DType::bf16 : DType::f16;
    OOMLAB_TRY(info, device.memory().mem_info());
    const u64 room = std::min(info.free_bytes / 2, 3 * kGiB);
    const u64 rows = std::min(kRowsMax, room / (3 * kWidth * dtype_bytes(type)));
    u64 side = kSideMax;
    while (side > 512 && 3 * side * side * dtype_bytes(type) > room) side /= 2;

    OOMLAB_TRY(small, Buffer::make(device, kMiB));
    const FillArgs little{.out = small.address(), .elements = 256, .seed = 1, .type = DType::f32};
    OOMLAB_TRY(overhead, step_s(device, [&] { return device.ops().fill(little); }));
    profile.step_overhead_s = overhead;
    {
        OOMLAB_TRY(in, Buffer::make(device, rows * 2 * kWidth * dtype_bytes(type)));
        OOMLAB_TRY(out, Buffer::make(device, rows * kWidth * dtype_bytes(type)));
        const GatedActArgs args{.gate_up = in.address(), .out = out.address(), .rows = rows,
                                .width = kWidth, .type = type};
        OOMLAB_TRY(seconds, step_s(device, [&] { return device.ops().gated_act(args); }));
        profile.bandwidth_share =
            cost(args).bytes / std::max(seconds - overhead, 1e-9) / profile.peak_bytes_per_s;
    }
    const u64 bytes = side * side * dtype_bytes(type);
    OOMLAB_TRY(in, Buffer::make(device, bytes));
    OOMLAB_TRY(weight, Buffer::make(device, bytes));
    OOMLAB_TRY(out, Buffer::make(device, bytes));
    for (const Buffer* b : {&in, &weight}) {   // real numbers: a product of zeros runs faster
        OOMLAB_TRY_VOID(device.ops().fill({.out = b->address(), .elements = side * side, .seed = 2,
                                           .scale = 1, .type = type}));
    }
    const MatmulArgs args{.in = in.address(), .weight = weight.address(), .out = out.address(),
                          .rows = side, .k = side, .n = side, .in_type = type, .out_type = type};
    OOMLAB_TRY(seconds, step_s(device, [&] { return device.ops().matmul(args); }));
    profile.flops_share =
        cost(args).flops / std::max(seconds - overhead, 1e-9) / profile.peak_flops_16;
    return {};
}

}  // namespace

DeviceResult<CardProfile> calibrate(Device& device) {
    const DeviceProps& props = device.props();
    CardProfile profile{.name = props.name, .sm_major = props.sm_major, .sm_minor = props.sm_minor,
                        .has_bf16 = props.has_bf16, .peak_flops_16 = props.peak_flops_16,
                        .peak_ops_8 = props.peak_ops_8, .peak_bytes_per_s = props.peak_bytes_per_s,
                        .simulated = props.simulated};
    OOMLAB_TRY_VOID(device.create_context());
    OOMLAB_TRY(info, device.memory().mem_info());
    profile.total_bytes = info.total_bytes;
    profile.context_bytes = device.context_bytes();
    OOMLAB_TRY_VOID(measure_graphs(device, profile));
    OOMLAB_TRY_VOID(measure_rates(device, profile));
    return profile;
}

std::string profile_toml(const CardProfile& p, const std::string& driver) {
    std::string name;
    for (const char c : p.name) {
        if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') name += c;
    }
    return fmt::format(
        "# {} by oomlab calibrate: {} with driver {}.\n"
        "name = \"{}\"\ntotal = {}\ncontext = {}\npeak_tflops_16 = {:.1f}\npeak_tops_8 = {:.1f}\n"
        "peak_gb_per_s = {:.0f}\nflops_share = {:.3f}\nbandwidth_share = {:.3f}\n"
        "step_overhead_us = {:.1f}\ncompute_capability = {}.{}\nbf16 = {}\ngraph_first = {}\n"
        "graph_each = {}\nsources = [\n"
        "    \"total, context: cudaMemGetInfo in a fresh process; modules, cuBLAS handle and workspace included\",\n"
        "    \"graphs: free memory before and after instantiating four graphs of {} kernels\",\n"
        "    \"peaks: clock, multiprocessors and memory bus as the driver reports them\",\n"
        "    \"flops_share: a square 16-bit product through cuBLAS; bandwidth_share: gated activation\",\n"
        "    \"step_overhead_us: a step of one small kernel, the shortest of {}\",\n]\n",
        p.simulated ? "Simulated, measured" : "Measured", name, driver, name, p.total_bytes,
        p.context_bytes, p.peak_flops_16 / 1e12, p.peak_ops_8 / 1e12, p.peak_bytes_per_s / 1e9,
        std::clamp(p.flops_share, 0.01, 1.0), std::clamp(p.bandwidth_share, 0.01, 1.0),
        std::clamp(p.step_overhead_s * 1e6, 0.1, 1e6), p.sm_major, p.sm_minor, p.has_bf16,
        p.graph_first_bytes, p.graph_each_bytes, kGraphKernels, kTimes);
}

}  // namespace oomlab
