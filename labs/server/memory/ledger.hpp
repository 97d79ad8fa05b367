// Tensors with an owner: the allocator's blocks, with the books kept. Everything that the server
// puts on the device through the allocator goes through here, so that owners always add up.
#pragma once

#include "labs/server/failure.hpp"
#include "labs/server/record/recorder.hpp"

namespace oomlab::server {

// A live allocation. Plain data: the holder frees it with Ledger::free, exactly once.
struct Tensor {
    u64 address = 0, bytes = 0;
    u32 request = trace::kNoRequest;
    Owner owner = Owner::activations;
};

inline constexpr u16 kNoOp = 0xffff;

class Ledger {
  public:
    Ledger(Device& device, const AllocConf& conf, Recorder& recorder)
        : recorder_(recorder), allocator_(device, conf, &recorder) {}

    Outcome<Tensor> alloc(u64 bytes, Owner owner, u32 request = trace::kNoRequest, u16 op = kNoOp) {
        Tensor t;
        if (!try_alloc(bytes, owner, request, op, t)) return fail(take_failure());
        return t;
    }
    // The same without building a Result: the hot path. On false the failure waits in take_failure().
    bool try_alloc(u64 bytes, Owner owner, u32 request, u16 op, Tensor& out);
    Failure take_failure() { return std::move(failure_); }
    void free(Tensor& tensor, u16 op = kNoOp) {
        if (tensor.address == 0) return;
        allocator_.free(tensor.address);
        recorder_.shrank(tensor.owner, tensor.address, tensor.bytes, tensor.request, op);
        tensor.address = 0;
    }
    CachingAllocator& allocator() { return allocator_; }
    Recorder& recorder() { return recorder_; }

  private:
    Recorder& recorder_;
    CachingAllocator allocator_;
    Failure failure_;
};

}  // namespace oomlab::server
