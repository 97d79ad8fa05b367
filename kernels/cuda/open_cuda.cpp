#include "kernels/cuda/open_cuda.hpp"

#include "kernels/cuda/cuda_device.hpp"
#include "kernels/cuda/real_api.hpp"
#include "kernels/ops/cuda/cuda_launch_ops.hpp"

namespace oomlab {
namespace {

// The device with the table and the launches that it borrows: they go in the right order.
class OwningDevice final : public Device {
  public:
    OwningDevice(std::unique_ptr<cuda::CudaApi> api, std::unique_ptr<LaunchOps> launch,
                 std::unique_ptr<Device> device)
        : api_(std::move(api)), launch_(std::move(launch)), device_(std::move(device)) {}

    const DeviceProps& props() const override { return device_->props(); }
    DeviceResult<void> create_context() override { return device_->create_context(); }
    DeviceMemory& memory() override { return device_->memory(); }
    DeviceStreams& streams() override { return device_->streams(); }
    DeviceGraphs& graphs() override { return device_->graphs(); }
    DeviceOps& ops() override { return device_->ops(); }
    double now_s() const override { return device_->now_s(); }
    void wait_until_s(double when) override { device_->wait_until_s(when); }
    DeviceResult<void> end_step() override { return device_->end_step(); }
    u64 context_bytes() const override { return device_->context_bytes(); }
    u64 graph_bytes() const override { return device_->graph_bytes(); }
    DeviceResult<void> grow_outside(u64 bytes) override { return device_->grow_outside(bytes); }
    u64 outside_bytes() const override { return device_->outside_bytes(); }
    DeviceResult<void> provoke(DeviceErrc code) override { return device_->provoke(code); }

  private:
    std::unique_ptr<cuda::CudaApi> api_;
    std::unique_ptr<LaunchOps> launch_;
    std::unique_ptr<Device> device_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int index, u64 memory_limit_bytes) {
    auto api = cuda::real_api();
    auto launch = kernel::cuda_launch_ops();
    OOMLAB_TRY(device, cuda::open_device(*api, *launch,
                                         {.index = index, .memory_limit_bytes = memory_limit_bytes}));
    std::unique_ptr<Device> owning =
        std::make_unique<OwningDevice>(std::move(api), std::move(launch), std::move(device));
    return owning;
}

std::string probe_cuda(int index) { return cuda::probe(*cuda::real_api(), index); }

}  // namespace oomlab
