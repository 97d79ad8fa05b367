// The seam between the server and a chip. Four small interfaces (memory, streams, graphs, ops) and
// the facts about the chip; two implementations (kernels/sim, kernels/cuda) and one wrapper that
// plants faults (faulty_device.hpp). Nothing above this line knows which chip it runs on.
//
// Addresses are device addresses; 0 is null. Not thread safe: one thread drives a device.
// After a sticky error every call returns that first error.
#pragma once

#include <memory>
#include <string>

#include "kernels/device/device_error.hpp"
#include "kernels/device/ops.hpp"

namespace oomlab {

using DeviceAddress = u64;
using StreamId = u64;   // 0 is the default stream
using EventId = u64;
using GraphId = u64;
using PhysicalHandle = u64;

struct MemInfo {
    u64 total_bytes = 0;            // as the driver reports it
    u64 free_bytes = 0;             // of the whole device, after all processes
    u64 other_processes_bytes = 0;  // held by others, as far as it is known
};

struct DeviceProps {
    std::string name;               // "NVIDIA H200"
    bool simulated = false;
    bool computes = false;          // ops really run (the real chip, or a small simulated one)
    u64 total_bytes = 0;
    u64 granularity_bytes = 2 * kMiB;   // of physical memory (cuMemGetAllocationGranularity)
    u64 memory_limit_bytes = 0;     // 0: none; a limit that oomlab set, not the card
    int sm_major = 0, sm_minor = 0;
    bool has_bf16 = true;
    double peak_flops_16 = 0;       // dense, per second, 16-bit inputs
    double peak_ops_8 = 0;          // dense int8/fp8; 0: none
    double peak_bytes_per_s = 0;
    // Shares of the peaks that a serving step reaches, and what every step costs besides.
    double flops_share = 0.65, bandwidth_share = 0.90, step_overhead_s = 1e-3;
};

class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    // Returns memory aligned to 512 bytes. On failure nothing changed.
    virtual DeviceResult<DeviceAddress> malloc(u64 bytes) = 0;
    virtual DeviceResult<void> free(DeviceAddress address) = 0;
    virtual DeviceResult<MemInfo> mem_info() = 0;
    // Virtual memory management: a range of addresses, physical handles, and mapping them into it.
    // Sizes are multiples of granularity_bytes. map() also makes the pages accessible.
    virtual DeviceResult<DeviceAddress> reserve(u64 bytes) = 0;
    virtual DeviceResult<void> release(DeviceAddress address, u64 bytes) = 0;
    virtual DeviceResult<PhysicalHandle> create(u64 bytes) = 0;
    virtual DeviceResult<void> destroy(PhysicalHandle handle) = 0;
    virtual DeviceResult<void> map(DeviceAddress address, u64 bytes, PhysicalHandle handle) = 0;
    virtual DeviceResult<void> unmap(DeviceAddress address, u64 bytes) = 0;
    // Pinned host memory (cudaHostAlloc): real host bytes on both chips.
    virtual DeviceResult<void*> host_alloc(u64 bytes) = 0;
    virtual DeviceResult<void> host_free(void* pointer) = 0;
    virtual DeviceResult<void> copy_to_device(DeviceAddress to, const void* from, u64 bytes) = 0;
    virtual DeviceResult<void> copy_to_host(void* to, DeviceAddress from, u64 bytes) = 0;
};

class DeviceStreams {
  public:
    virtual ~DeviceStreams() = default;
    virtual DeviceResult<StreamId> create_stream() = 0;
    virtual DeviceResult<void> destroy_stream(StreamId stream) = 0;
    virtual DeviceResult<EventId> record_event(StreamId stream) = 0;  // creates and records
    virtual DeviceResult<bool> query_event(EventId event) = 0;        // true: done
    virtual DeviceResult<void> synchronize_event(EventId event) = 0;
    virtual DeviceResult<void> destroy_event(EventId event) = 0;
    virtual DeviceResult<void> synchronize() = 0;                     // the whole device
};

class DeviceGraphs {
  public:
    virtual ~DeviceGraphs() = default;
    virtual DeviceResult<void> begin_capture(StreamId stream) = 0;
    // Ends capture and instantiates. The graph's own device memory is taken from the device,
    // outside any allocator: that is the point.
    virtual DeviceResult<GraphId> end_capture(StreamId stream) = 0;
    virtual DeviceResult<void> launch_graph(GraphId graph, StreamId stream) = 0;
    virtual DeviceResult<void> destroy_graph(GraphId graph) = 0;
};

class Device {
  public:
    virtual ~Device() = default;
    virtual const DeviceProps& props() const = 0;
    // Creates the context and the libraries' handles; its cost shows in mem_info().
    virtual DeviceResult<void> create_context() = 0;
    virtual DeviceMemory& memory() = 0;
    virtual DeviceStreams& streams() = 0;
    virtual DeviceGraphs& graphs() = 0;
    virtual DeviceOps& ops() = 0;
    // Seconds since the device was opened: virtual on the simulated chip, real on the real one.
    virtual double now_s() const = 0;
    // Simulated chip: moves the clock on (idle time until the next arrival). Real chip: waits.
    virtual void wait_until_s(double when) = 0;
    // Ends a step: the ops since the last call took max(flops/rate, bytes/rate) + overhead on the
    // simulated chip (they overlap); the real chip synchronises. Returns the step's first error.
    virtual DeviceResult<void> end_step() = 0;
    // Memory of one kind that this process holds outside any allocator (context, graphs, library
    // workspaces), as far as the chip can tell them apart.
    virtual u64 context_bytes() const = 0;
    virtual u64 graph_bytes() const = 0;
    // What a fault needs: memory that grows outside the allocator (a library's buffers).
    virtual DeviceResult<void> grow_outside(u64 bytes) = 0;
    virtual u64 outside_bytes() const = 0;
    // A fault that really happens on a real chip and is planted on a simulated one: an illegal
    // access, a bad launch configuration, a device-side assert, a library that cannot allocate.
    // What a launch or a library refuses is returned here; what a kernel does wrong may pass here
    // and be reported by whichever call comes next, end_step() at the latest.
    virtual DeviceResult<void> provoke(DeviceErrc code) = 0;
};

}  // namespace oomlab
