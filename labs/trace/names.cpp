#include "labs/trace/records.hpp"

namespace oomlab::trace {

// Numbers come from files, so every function has an answer for one that it does not know.
const char* phase_name(Phase phase) {
    switch (phase) {
        case Phase::start: return "start";
        case Phase::host_load: return "host_load";
        case Phase::context: return "context";
        case Phase::weights: return "weights";
        case Phase::profile: return "profile";
        case Phase::kv_pool: return "kv_pool";
        case Phase::graph_capture: return "graph_capture";
        case Phase::warmup: return "warmup";
        case Phase::serving: return "serving";
        case Phase::shutdown: return "shutdown";
        case Phase::count_: break;
    }
    return "unknown";
}

const char* record_type_name(RecordType type) {
    switch (type) {
        case RecordType::none: return "none";
        case RecordType::run_info: return "run_info";
        case RecordType::phase: return "phase";
        case RecordType::budget: return "budget";
        case RecordType::sample: return "sample";
        case RecordType::request: return "request";
        case RecordType::segment: return "segment";
        case RecordType::retry: return "retry";
        case RecordType::failure: return "failure";
        case RecordType::block_map: return "block_map";
        case RecordType::kv_map: return "kv_map";
        case RecordType::log: return "log";
        case RecordType::memory_summary: return "memory_summary";
        case RecordType::action: return "action";
        case RecordType::device_csv: return "device_csv";
        case RecordType::finish: return "finish";
        case RecordType::outside: return "outside";
        case RecordType::process: return "process";
        case RecordType::host_sample: return "host_sample";
        case RecordType::control: return "control";
        case RecordType::evidence: return "evidence";
        case RecordType::ready: return "ready";
    }
    return "unknown";
}

const char* request_event_name(RequestEvent event) {
    switch (event) {
        case RequestEvent::arrival: return "arrival";
        case RequestEvent::admission: return "admission";
        case RequestEvent::rejection: return "rejection";
        case RequestEvent::preemption: return "preemption";
        case RequestEvent::completion: return "completion";
        case RequestEvent::cancelled: return "cancelled";
        case RequestEvent::failed: return "failed";
        case RequestEvent::first_token: return "first_token";
    }
    return "unknown";
}

const char* failure_kind_name(FailureKind kind) {
    switch (kind) {
        case FailureKind::allocator_oom: return "allocator_oom";
        case FailureKind::device_oom: return "device_oom";
        case FailureKind::cuda_error: return "cuda_error";
        case FailureKind::refused: return "refused";
        case FailureKind::host_alloc: return "host_alloc";
        case FailureKind::internal: return "internal";
    }
    return "unknown";
}

}  // namespace oomlab::trace
