#include "kernels/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/detail/parts.hpp"
#include "kernels/cuda/nvidia_smi.hpp"

namespace oomlab::cuda {
namespace {

// Dense 16-bit operations with f32 sums a clock on one multiprocessor, from NVIDIA's whitepapers.
double flops_per_clock(int sm_major, int sm_minor) {
    switch (sm_major) {
        case 7: return 1024;
        case 8: return sm_minor == 0 ? 2048 : 1024;
        case 9: return 4096;
        case 10: return 8192;
        default: return 1024;
    }
}

DeviceProps props_of(const DeviceFacts& facts, u64 granularity_bytes, u64 memory_limit_bytes) {
    DeviceProps p;
    p.name = facts.name;
    p.computes = true;
    p.total_bytes = facts.total_bytes;
    p.granularity_bytes = granularity_bytes;
    p.memory_limit_bytes = memory_limit_bytes;
    p.sm_major = facts.sm_major;
    p.sm_minor = facts.sm_minor;
    p.has_bf16 = facts.sm_major >= 8;
    p.peak_flops_16 = flops_per_clock(facts.sm_major, facts.sm_minor) * facts.multiprocessors *
                      static_cast<double>(facts.clock_hz);
    p.peak_ops_8 = 2 * p.peak_flops_16;
    // Two transfers a clock over the whole bus.
    p.peak_bytes_per_s = 2 * static_cast<double>(facts.memory_clock_hz) * facts.memory_bus_bits / 8;
    return p;
}

class CudaDevice final : public Device {
  public:
    CudaDevice(CudaApi& api, LaunchOps& launch, const OpenOptions& options, DeviceProps props,
               std::string uuid)
        : session_(api, launch, options, std::move(props), std::move(uuid)),
          memory_(session_), streams_(session_), graphs_(session_), ops_(session_),
          opened_s_(api.now_s()) {}

    const DeviceProps& props() const override { return session_.props; }
    DeviceResult<void> create_context() override { return session_.create_context(); }
    DeviceMemory& memory() override { return memory_; }
    DeviceStreams& streams() override { return streams_; }
    DeviceGraphs& graphs() override { return graphs_; }
    DeviceOps& ops() override { return ops_; }
    double now_s() const override { return session_.api.now_s() - opened_s_; }
    void wait_until_s(double when) override { session_.api.sleep_until_s(opened_s_ + when); }
    DeviceResult<void> end_step() override { return streams_.synchronize(); }
    u64 context_bytes() const override { return session_.context_bytes(); }
    u64 graph_bytes() const override { return session_.graph_bytes; }
    DeviceResult<void> grow_outside(u64 bytes) override {
        OOMLAB_TRY_VOID(session_.enter());
        return session_.grow_outside(bytes);
    }
    u64 outside_bytes() const override { return session_.outside_bytes; }

    DeviceResult<void> provoke(DeviceErrc code) override {
        OOMLAB_TRY_VOID(session_.enter());
        if (code == DeviceErrc::memory_allocation) return session_.library_cannot_allocate();
        const Handle stream = session_.current_stream();
        OOMLAB_TRY_VOID(session_.check(session_.launch.provoke(code, stream), DeviceCall::launch, 0,
                                       "provoked"));
        return session_.check(session_.api.stream_synchronize(stream), DeviceCall::synchronize, 0,
                              "provoked");
    }

  private:
    Session session_;
    CudaMemory memory_;
    CudaStreams streams_;
    CudaGraphs graphs_;
    CudaOps ops_;
    const double opened_s_;
};

// What a number of the runtime says, for a person who asked for this card.
std::string reason(int error) {
    const auto code = static_cast<DeviceErrc>(error);
    return fmt::format("{} ({}: {})", errc_text(code), error, errc_name(code));
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + '"';
}

std::string unusable(int error, std::string_view why) {
    return fmt::format(R"({{"usable":false,"error":{},"name":{},"reason":{}}})", error,
                       quoted(errc_name(static_cast<DeviceErrc>(error))), quoted(why));
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(CudaApi& api, LaunchOps& launch,
                                            const OpenOptions& options) {
    const auto refuse = [&](std::string why) {
        return fail(Error::environment(fmt::format("cuda:{}: {}", options.index, why)));
    };
    int count = 0;
    if (const int error = api.device_count(&count); error != 0) {
        api.get_last_error();
        return refuse(reason(error));
    }
    if (options.index < 0 || options.index >= count) {
        return refuse(fmt::format("there is no such card; the driver sees {}", count));
    }
    DeviceFacts facts;
    if (const int error = api.device_facts(options.index, &facts); error != 0) {
        api.get_last_error();
        return refuse(reason(error));
    }
    u64 granularity = 0;
    if (const int error = api.mem_granularity(options.index, &granularity);
        error != 0 || granularity == 0) {
        return refuse(error != 0 ? reason(error) : "the driver gives no granularity of memory");
    }
    if (const std::string why = api.blas_open(); !why.empty()) return refuse(why);
    std::unique_ptr<Device> device = std::make_unique<CudaDevice>(
        api, launch, options, props_of(facts, granularity, options.memory_limit_bytes), facts.uuid);
    return device;
}

std::string probe(CudaApi& api, int index) {
    int count = 0;
    if (const int error = api.device_count(&count); error != 0) {
        api.get_last_error();
        return unusable(error, errc_text(static_cast<DeviceErrc>(error)));
    }
    constexpr int kInvalidDevice = static_cast<int>(DeviceErrc::invalid_device);
    if (index < 0 || index >= count) {
        return unusable(kInvalidDevice,
                        fmt::format("there is no card {}; the driver sees {}", index, count));
    }
    DeviceFacts facts;
    int driver = 0;
    int error = api.device_facts(index, &facts);
    if (error == 0) error = api.driver_version(&driver);
    if (error != 0) {
        api.get_last_error();
        return unusable(error, errc_text(static_cast<DeviceErrc>(error)));
    }
    std::string free_bytes = "null";
    if (const auto text = api.nvidia_smi(facts.uuid, kQueryUsed)) {
        if (const auto used = parse_used_bytes(*text)) {
            free_bytes = std::to_string(facts.total_bytes - std::min(*used, facts.total_bytes));
        }
    }
    const std::string no_blas = api.blas_open();
    if (!no_blas.empty()) return unusable(static_cast<int>(DeviceErrc::symbol_not_found), no_blas);
    return fmt::format(
        R"({{"usable":true,"index":{},"name":{},"total_bytes":{},"free_bytes":{},)"
        R"("compute_capability":"{}.{}","driver":"{}.{}","cublas":true}})",
        index, quoted(facts.name), facts.total_bytes, free_bytes, facts.sm_major, facts.sm_minor,
        driver / 1000, driver % 1000 / 10);
}

}  // namespace oomlab::cuda
