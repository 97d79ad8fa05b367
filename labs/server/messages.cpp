#include "labs/server/messages.hpp"

#include <fmt/format.h>

namespace oomlab::server {

namespace {

std::string cuda_error(const DeviceError& e) {
    if (e.detail.rfind("CUBLAS_", 0) == 0) {
        return fmt::format("RuntimeError: CUDA error: {} when calling `cublasCreate(handle)`", e.detail);
    }
    if (e.detail.rfind("CUDNN_", 0) == 0) return fmt::format("RuntimeError: cuDNN error: {}", e.detail);
    if (e.detail.rfind("nccl", 0) == 0) {
        return fmt::format("torch.distributed.DistBackendError: NCCL error: {}: Cuda failure {} '{}'", e.detail,
                           static_cast<int>(e.code), errc_text(e.code));
    }
    std::string text = fmt::format("torch.AcceleratorError: CUDA error: {}\nSearch for `{}' in "
                                   "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html "
                                   "for more information.",
                                   errc_text(e.code), errc_name(e.code));
    if (!e.out_of_memory()) {
        text += "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
                "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1";
    }
    return text;
}

}  // namespace

std::string failure_message(const Failure& f, trace::Phase phase) {
    if (!f.message.empty()) return f.message;
    switch (f.kind) {
        case trace::FailureKind::allocator_oom: {
            const std::string text = "torch.OutOfMemoryError: " + oom_message(f.alloc);
            if (phase == trace::Phase::weights) {
                return "Failed to load model - not enough GPU memory. Try lowering "
                       "--gpu-memory-utilization to free memory for weights, increasing "
                       "--tensor-parallel-size, or using --quantization. (original error: " +
                       oom_message(f.alloc) + ")\n" + text;
            }
            return text;
        }
        case trace::FailureKind::device_oom:
        case trace::FailureKind::cuda_error: return cuda_error(f.device);
        default: return "RuntimeError: " + f.message;
    }
}

std::string frames(const Failure& f, trace::Phase phase) {
    const auto frame = [](const char* file, const char* function) {
        return fmt::format("  File \"oomlab/server/{}\", in {}\n", file, function);
    };
    if (f.kind == trace::FailureKind::refused || f.kind == trace::FailureKind::host_alloc) return "";
    std::string text = "Traceback (most recent call last):\n";
    switch (phase) {
        case trace::Phase::context: text += frame("worker", "init_device"); break;
        case trace::Phase::weights: text += frame("model_loader", "load_model"); break;
        case trace::Phase::profile:
            text += frame("worker", "determine_available_memory") + frame("model_runner", "profile_run") +
                    frame("model_runner", "_dummy_run");
            break;
        case trace::Phase::kv_pool: text += frame("worker", "initialize_kv_cache"); break;
        case trace::Phase::graph_capture: text += frame("model_runner", "capture_model"); break;
        case trace::Phase::serving: text += frame("core", "run_busy_loop") + frame("model_runner", "execute_model"); break;
        default: break;
    }
    return text;
}

}  // namespace oomlab::server
