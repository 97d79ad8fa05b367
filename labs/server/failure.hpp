// How a server ends badly: one value with all figures, whatever said no.
#pragma once

#include <string>

#include "labs/server/memory/alloc_failure.hpp"
#include "labs/trace/records.hpp"

namespace oomlab::server {

struct Failure {
    trace::FailureKind kind = trace::FailureKind::internal;
    AllocFailure alloc;         // allocator_oom
    DeviceError device;         // device_oom, cuda_error
    std::string message;        // what people see; composed at the edge when empty
    u32 request = trace::kNoRequest;

    static Failure of(AllocFailure f) {
        Failure r;
        const bool memory = f.kind != AllocFailure::Kind::device_error;
        r.kind = memory ? trace::FailureKind::allocator_oom : trace::FailureKind::cuda_error;
        r.device = f.device;
        r.alloc = std::move(f);
        return r;
    }
    static Failure of(DeviceError e) {
        Failure r;
        r.kind = e.out_of_memory() ? trace::FailureKind::device_oom : trace::FailureKind::cuda_error;
        r.device = std::move(e);
        return r;
    }
    static Failure refused(std::string message, u32 request = trace::kNoRequest) {
        Failure r;
        r.kind = trace::FailureKind::refused;
        r.message = std::move(message);
        r.request = request;
        return r;
    }
};

template <class T>
using Outcome = Result<T, Failure>;

}  // namespace oomlab::server

// Early return from a device's or the allocator's call.
#define OOMLAB_DEVICE_TRY(call)                                                    \
    do {                                                                           \
        auto device_result_ = (call);                                              \
        if (!device_result_) return ::oomlab::fail(::oomlab::server::Failure::of(std::move(device_result_.error()))); \
    } while (false)
