// Out of memory as a value: every figure that PyTorch's message prints, and those that it leaves out.
#pragma once

#include <string>

#include "kernels/device/device_error.hpp"
#include "kernels/device/owner.hpp"

namespace oomlab {

struct AllocFailure {
    enum class Kind { out_of_memory, device_error, absurd_size };
    Kind kind = Kind::out_of_memory;
    DeviceError device;           // the driver's last word
    u64 requested_bytes = 0;      // as the caller asked
    u64 rounded_bytes = 0;        // what a block would have had
    u64 segment_bytes = 0;        // "Tried to allocate"
    u64 device_total_bytes = 0, device_free_bytes = 0, other_processes_bytes = 0;
    u64 allowed_bytes = 0;        // the cap of a per-process fraction, 0: none
    bool capped = false;          // the cap refused it, not the device
    u64 allocated_bytes = 0, reserved_bytes = 0, private_pool_free_bytes = 0;
    u64 process_bytes = 0;        // this process on the device: reserved + outside the allocator
    u64 largest_free_block_bytes = 0, inactive_split_bytes = 0, pending_free_bytes = 0;
    u64 num_alloc_retries = 0;
    Owner owner = Owner::unattributed;
};

// The sentence of torch.OutOfMemoryError in its current form (V7 of the message table).
std::string oom_message(const AllocFailure& f, int device_index = 0);

}  // namespace oomlab
