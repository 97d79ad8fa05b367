#include "labs/server/faults/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/catalog/drawn_fault.hpp"

namespace oomlab::server {

namespace {

const char* repair_of(const std::string& kind) {
    for (const FaultKind& k : fault_kinds()) {
        if (kind == k.kind) return k.repair;
    }
    return "";
}

bool repaired(const ServerConfig& config, const std::string& kind) {
    const auto& fix = config.scenario.fix;
    return std::find(fix.begin(), fix.end(), repair_of(kind)) != fix.end();
}

DeviceErrc errc_by_name(const std::string& name) {
    for (const DeviceErrc code :
         {DeviceErrc::invalid_value, DeviceErrc::invalid_configuration, DeviceErrc::illegal_address,
          DeviceErrc::device_assert, DeviceErrc::launch_failure, DeviceErrc::launch_out_of_resources,
          DeviceErrc::misaligned_address, DeviceErrc::ecc_uncorrectable, DeviceErrc::not_supported}) {
        if (name == errc_name(code)) return code;
    }
    return DeviceErrc::invalid_configuration;
}

}  // namespace

Faults::Faults(const ServerConfig& config, Device& device, HostMemory& host)
    : config_(config), device_(device), host_(host) {
    const Prng root = Prng(config.scenario.workload.seed).fork("faults");
    for (std::size_t i = 0; i < config.scenario.faults.size(); ++i) {
        FaultSpec spec = config.scenario.faults[i];
        if (spec.kind == "drawn") spec = draw_fault(spec, config.shape.hidden_size);
        if (spec.kind == "healthy" || repaired(config, spec.kind)) continue;
        active_.push_back(Active{spec, root.fork(std::to_string(i)), {}, 0, 0, false});
    }
}

void Faults::forget(Ledger* ledger) {
    for (Active& a : active_) {
        if (ledger != nullptr) {
            for (Tensor& t : a.kept) ledger->free(t);
        }
        a.kept.clear();
        a.carried_bytes = 0;
        a.next_item_s = 0;
    }
    ledger_ = nullptr;
    pool_ = nullptr;
}

Outcome<void> Faults::keep(Active& a, u64 bytes, Owner owner, u32 request) {
    OOMLAB_TRY(t, ledger_->alloc(bytes, owner, request));
    a.kept.push_back(t);
    return {};
}

Outcome<void> Faults::on_finished(const Request& request, double now_s, bool cut_short) {
    const ModelShape& m = config_.shape;
    const u64 element = dtype_bytes(m.dtype);
    for (Active& a : active_) {
        const FaultSpec& f = a.spec;
        if (!now(a, now_s)) continue;
        const bool hit = f.share >= 1 || a.prng.chance(f.share);
        if (!hit) continue;
        const u64 states = f.bytes != 0 ? f.bytes : 40 * m.hidden_size * element;   // 40 hidden states
        if (f.kind == "request_retained") {
            OOMLAB_TRY_VOID(keep(a, states, Owner::activations, request.number));
        } else if (f.kind == "cache_without_eviction") {
            // An entry belongs to the cache, not to the request that caused it.
            OOMLAB_TRY_VOID(keep(a, states, Owner::workspace, trace::kNoRequest));
        } else if (f.kind == "cleanup_skipped" && cut_short) {
            OOMLAB_TRY_VOID(keep(a, request.arrival.prompt_tokens * m.hidden_size * element, Owner::activations, request.number));
        } else if (f.kind == "graph_per_request") {
            OOMLAB_TRY_VOID(keep(a, f.bytes != 0 ? f.bytes : 4 * kMiB, Owner::graphs, request.number));
        } else if (f.kind == "inference_mode_missing") {
            // One softmax row saved for a backward pass that never comes.
            OOMLAB_TRY_VOID(keep(a, m.vocab_size * 4, Owner::activations, request.number));
        } else if (f.kind == "outside_growth" && f.bytes_per_request != 0) {
            OOMLAB_DEVICE_TRY(device_.grow_outside(f.bytes_per_request));
        } else if (f.kind == "host_growth" && f.bytes_per_request != 0) {
            OOMLAB_TRY_VOID(host_.keep(f.bytes_per_request));
        } else if (f.kind == "kv_accounting" && pool_ != nullptr) {
            pool_->lose(f.blocks_per_request != 0 ? f.blocks_per_request : 4);
        }
    }
    return {};
}

// A bounded store whose items change size: filled with 1.5 MiB items in three minutes, then larger
// ones in and random ones out, its whole size once an hour. The bytes are bounded; the holes are not.
Outcome<void> Faults::churn(Active& a, double now_s) {
    const u64 store = a.spec.bytes != 0 ? a.spec.bytes : 768 * kMiB;
    const double begin = a.spec.from_s, fill = 180;
    u64 held = 0;
    for (const Tensor& t : a.kept) held += t.bytes;
    if (now_s < begin + fill) {
        const u64 want = static_cast<u64>(static_cast<double>(store) * (now_s - begin) / fill);
        while (held + 1536 * kKiB <= want) {
            OOMLAB_TRY_VOID(keep(a, 1536 * kKiB, Owner::workspace, trace::kNoRequest));
            held += a.kept.back().bytes;
        }
        return {};
    }
    while (a.next_item_s < now_s) {
        const u64 item = a.prng.between(12 * kMiB, 18 * kMiB);
        a.next_item_s = std::max(a.next_item_s, begin + fill) + 3600.0 * static_cast<double>(item) / static_cast<double>(store);
        while (held + item > store && !a.kept.empty()) {
            const std::size_t i = a.prng.below(a.kept.size());
            held -= a.kept[i].bytes;
            ledger_->free(a.kept[i]);
            a.kept.erase(a.kept.begin() + static_cast<std::ptrdiff_t>(i));
        }
        OOMLAB_TRY_VOID(keep(a, item, Owner::workspace, trace::kNoRequest));
        held += a.kept.back().bytes;
    }
    return {};
}

Outcome<void> Faults::on_step(double now_s, double dt_s) {
    for (Active& a : active_) {
        const FaultSpec& f = a.spec;
        if (!now(a, now_s)) continue;
        if (f.kind == "outside_growth" || f.kind == "host_growth") {
            a.carried_bytes += static_cast<double>(f.bytes_per_hour) * dt_s / 3600.0;
            const u64 grain = f.kind == "host_growth" ? 64 * kKiB : 2 * kMiB;
            if (a.carried_bytes < static_cast<double>(grain)) continue;
            const u64 bytes = round_down(static_cast<u64>(a.carried_bytes), grain);
            a.carried_bytes -= static_cast<double>(bytes);
            if (f.kind == "host_growth") OOMLAB_TRY_VOID(host_.keep(bytes));
            else OOMLAB_DEVICE_TRY(device_.grow_outside(bytes));
        } else if (f.kind == "fragmenting_sizes") {
            OOMLAB_TRY_VOID(churn(a, now_s));
        } else if (!a.fired && (f.kind == "illegal_access" || f.kind == "bad_launch" ||
                                f.kind == "device_assert" || f.kind == "wrapper_says_oom" ||
                                (f.kind == "library_alloc_failed" && f.from_s > 0))) {
            a.fired = true;
            const DeviceErrc code = f.kind == "illegal_access"  ? DeviceErrc::illegal_address
                                    : f.kind == "bad_launch"    ? DeviceErrc::invalid_configuration
                                    : f.kind == "device_assert" ? DeviceErrc::device_assert
                                    : f.kind == "library_alloc_failed" ? DeviceErrc::memory_allocation
                                                                       : errc_by_name(f.wraps);
            auto result = device_.provoke(code);
            if (!result) {
                DeviceError e = std::move(result.error());
                if (f.kind == "library_alloc_failed") {
                    e.detail = f.library == "cublas" ? "CUBLAS_STATUS_ALLOC_FAILED"
                               : f.library == "cudnn" ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
                                                      : "ncclUnhandledCudaError";
                    e.call = DeviceCall::create_blas;
                }
                Failure failure = Failure::of(std::move(e));
                failure.message = wrapped_message(failure.device);
                return fail(std::move(failure));
            }
        }
    }
    return {};
}

Outcome<void> Faults::on_library_init() {
    for (Active& a : active_) {
        if (a.spec.kind != "library_alloc_failed" || a.spec.from_s > 0) continue;
        DeviceError e;
        e.code = DeviceErrc::memory_allocation;
        e.call = DeviceCall::create_blas;
        e.detail = a.spec.library == "cublas" ? "CUBLAS_STATUS_ALLOC_FAILED"
                   : a.spec.library == "cudnn" ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
                                               : "ncclUnhandledCudaError";
        return fail(Failure::of(std::move(e)));
    }
    return {};
}

std::string Faults::wrapped_message(const DeviceError& error) const {
    for (const Active& a : active_) {
        if (a.spec.kind != "wrapper_says_oom") continue;
        // A wrapper that calls every exception of the engine the same name.
        return fmt::format("ServiceError: out of memory while executing the model; try a smaller batch. "
                           "(cause: CUDA error: {})", errc_text(error.code));
    }
    return "";
}

}  // namespace oomlab::server
