// What the four interfaces of the real chip share: the context, the books of what this process holds
// on the card, and the one place where CUDA's numbers become a DeviceError.
//
// Invariants: (1) own_bytes() counts everything that this process took through the table and not
// given back; (2) after a sticky error `enter` returns that error and nothing else; (3) whatever is
// in the books is given back by the destructor, which tolerates a card that no longer answers.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "kernels/cuda/cuda_device.hpp"

namespace oomlab::cuda {

// A mapping is kept by address; a physical handle lives until it is destroyed and no longer mapped.
struct Mapping {
    u64 bytes = 0;
    u64 handle = 0;
};
struct Physical {
    u64 bytes = 0;
    u64 mappings = 0;
    bool destroyed = false;
};

class Session {
  public:
    Session(CudaApi& table, LaunchOps& launches, const OpenOptions& options, DeviceProps facts,
            std::string card_uuid);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    CudaApi& api;
    LaunchOps& launch;
    const DeviceProps props;
    const int index;

    // Every call begins here: the sticky error if there is one, and a context.
    DeviceResult<void> enter();
    DeviceResult<void> create_context();
    // Turns a number of the runtime or the driver into a result; clears the runtime's own copy and
    // remembers a sticky one.
    DeviceResult<void> check(int error, DeviceCall call, u64 bytes = 0, const char* detail = "");
    // The same for cuBLAS.
    DeviceResult<void> check_blas(int status, DeviceCall call, u64 bytes = 0);
    // Refuses what would pass the memory limit; nothing is asked of CUDA then.
    DeviceResult<void> expect_within_limit(DeviceCall call, u64 bytes);
    DeviceResult<MemInfo> mem_info();
    DeviceResult<void> grow_outside(u64 bytes);
    DeviceResult<void> library_cannot_allocate();

    Handle stream_of(u64 id) const { return id == 0 ? main_stream_ : reinterpret_cast<Handle>(id); }
    // Ops go to the stream that is being captured, else to stream 0.
    Handle current_stream() const { return stream_of(capturing.value_or(0)); }
    Workspace workspace() const { return workspace_; }
    Handle blas() const { return blas_; }
    u64 context_bytes() const { return context_bytes_; }
    u64 charge_for(u64 bytes) const { return round_up(bytes, props.granularity_bytes); }

    // The books.
    std::optional<u64> capturing;              // the stream
    std::map<u64, u64> allocations;            // address -> bytes
    std::map<u64, u64> ranges;                 // reserved addresses
    std::map<u64, Mapping> mappings;
    std::map<u64, Physical> physical;
    std::set<void*> pinned;
    std::set<u64> streams, events;
    std::map<u64, u64> graphs;                 // exec -> bytes
    u64 allocated_bytes = 0;                   // small ones share the driver's pages: see own_bytes
    u64 graph_bytes = 0;
    u64 outside_bytes = 0;

  private:
    DeviceResult<void> make_context();
    DeviceResult<void> make_libraries();
    void measure_context(std::optional<u64> used_before, u64 used_after);
    u64 own_bytes() const;
    u64 free_bytes_or_zero();
    void give_back_everything();

    const std::string uuid_;
    std::optional<DeviceError> poison_;
    std::map<u64, u64> outside_;
    Handle main_stream_ = nullptr;
    Handle blas_ = nullptr;
    Workspace workspace_;
    bool has_context_ = false, ready_ = false;
    u64 context_bytes_ = 0;
};

}  // namespace oomlab::cuda
