#include "kernels/ops/cuda/cuda_launch_ops.hpp"

#include <cuda_runtime_api.h>

namespace oomlab::kernel {
namespace {

class CudaLaunchOps final : public LaunchOps {
  public:
    explicit CudaLaunchOps(Version version) : version_(version) {}

    int load() override {
        for (const KernelEntry& kernel : all_kernels()) {
            cudaFuncAttributes attributes;   // asking for them loads the kernel
            const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel.function);
            if (error != cudaSuccess) return static_cast<int>(error);
        }
        return 0;
    }
    int rms_norm(const RmsNormArgs& a, void* stream) override {
        return kernel::rms_norm(a, version_, stream);
    }
    int rope(const RopeArgs& a, void* stream) override { return kernel::rope(a, version_, stream); }
    int kv_append(const KvAppendArgs& a, void* stream) override {
        return kernel::kv_append(a, version_, stream);
    }
    int attention(const AttentionArgs& a, Workspace work, void* stream) override {
        return kernel::attention(a, version_, work, stream);
    }
    int gated_act(const GatedActArgs& a, void* stream) override {
        return kernel::gated_act(a, version_, stream);
    }
    int embed(const EmbedArgs& a, void* stream) override { return kernel::embed(a, stream); }
    int gather(const GatherArgs& a, void* stream) override { return kernel::gather(a, stream); }
    int sample(const SampleArgs& a, Workspace work, void* stream) override {
        return kernel::sample(a, version_, work, stream);
    }
    int fill(const FillArgs& a, void* stream) override { return kernel::fill(a, version_, stream); }
    int checksum(u64 address, u64 bytes, Workspace work, void* stream) override {
        return kernel::checksum(address, bytes, version_, work, stream);
    }
    int provoke(DeviceErrc code, void* stream) override { return kernel::provoke(code, stream); }

  private:
    const Version version_;
};

}  // namespace

std::unique_ptr<LaunchOps> cuda_launch_ops(Version version) {
    return std::make_unique<CudaLaunchOps>(version);
}

}  // namespace oomlab::kernel
