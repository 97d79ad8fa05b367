// A CUDA runtime, driver and cuBLAS that exist on the host alone: a capacity, a granularity, one
// context, live allocations that are counted, and any call made to fail. Device memory is host
// memory at the same addresses, and kernels are the host ops, so results can be compared too.
//
// It is strict where CUDA is: a double free, an unmapped range, a stream of another life or a call
// without a context is an error with CUDA's number. Not thread safe.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_api.hpp"
#include "kernels/ops/launch_ops.hpp"

namespace oomlab::test {

class FakeCuda final : public cuda::CudaApi, public LaunchOps {
  public:
    explicit FakeCuda(u64 total_bytes = 8 * kGiB) : total_bytes_(total_bytes) {}
    ~FakeCuda() override;

    // What the machine is like. Set before it is used.
    int cards = 1;
    int driver_error = 0;                 // of device_count: 35 is a machine without a driver
    std::string no_blas;                  // why cuBLAS cannot be opened
    u64 granularity_bytes = 2 * kMiB;
    u64 context_bytes = 300 * kMiB, module_bytes = 6 * kMiB, blas_bytes = 24 * kMiB;
    u64 graph_bytes = 10 * kMiB;
    u64 others_bytes = 0;                 // held by other processes
    bool has_smi = true;
    bool runs_kernels = true;             // false: launches are only counted
    std::function<void(const std::string&)> before_call;   // e.g. another process takes memory

    // The n-th call from now on (from 1) fails with this number, once or from then on; cuBLAS calls
    // fail with blas_status. Numbers of sticky errors stick, as on a card.
    struct Plan {
        u64 nth = 0;                      // 0: none
        bool for_ever = false;
        int error = 2;
        int blas_status = 3;
        std::string only{};               // this call's name alone is counted; "": all
    };
    void plan(const Plan& p);
    u64 calls() const { return names_.size(); }
    const std::vector<std::string>& names() const { return names_; }
    const std::string& failed_name() const { return failed_name_; }
    u64 failures() const { return failures_; }
    u64 count(const std::string& name) const;

    // What is alive: allocations, ranges, handles, mappings, pinned memory, streams, events, graphs,
    // library handles, the context. 0 after a device's end.
    u64 live() const;
    u64 used_bytes() const;
    bool has_context() const { return has_context_; }

    int device_count(int* count) override;
    int driver_version(int* version) override;
    int device_facts(int index, cuda::DeviceFacts* facts) override;
    int create_context(int index) override;
    int device_synchronize() override;
    int device_reset() override;
    int get_last_error() override;
    int mem_get_info(u64* free_bytes, u64* total_bytes) override;
    int malloc(u64* address, u64 bytes) override;
    int free(u64 address) override;
    int host_alloc(void** pointer, u64 bytes) override;
    int free_host(void* pointer) override;
    int copy_to_device(u64 to, const void* from, u64 bytes, cuda::Handle stream) override;
    int copy_to_host(void* to, u64 from, u64 bytes, cuda::Handle stream) override;
    int mem_granularity(int index, u64* bytes) override;
    int address_reserve(u64* address, u64 bytes) override;
    int address_free(u64 address, u64 bytes) override;
    int mem_create(u64* handle, u64 bytes, int index) override;
    int mem_release(u64 handle) override;
    int mem_map(u64 address, u64 bytes, u64 handle) override;
    int mem_set_access(u64 address, u64 bytes, int index) override;
    int mem_unmap(u64 address, u64 bytes) override;
    int stream_create(cuda::Handle* stream) override;
    int stream_destroy(cuda::Handle stream) override;
    int stream_synchronize(cuda::Handle stream) override;
    int stream_begin_capture(cuda::Handle stream) override;
    int stream_end_capture(cuda::Handle stream, cuda::Handle* graph) override;
    int event_create(cuda::Handle* event) override;
    int event_record(cuda::Handle event, cuda::Handle stream) override;
    int event_query(cuda::Handle event) override;
    int event_synchronize(cuda::Handle event) override;
    int event_destroy(cuda::Handle event) override;
    int graph_instantiate(cuda::Handle* exec, cuda::Handle graph) override;
    int graph_upload(cuda::Handle exec, cuda::Handle stream) override;
    int graph_launch(cuda::Handle exec, cuda::Handle stream) override;
    int graph_exec_destroy(cuda::Handle exec) override;
    int graph_destroy(cuda::Handle graph) override;
    std::string blas_open() override { return no_blas; }
    int blas_create(cuda::Handle* handle) override;
    int blas_destroy(cuda::Handle handle) override;
    int blas_set_stream(cuda::Handle handle, cuda::Handle stream) override;
    int blas_set_workspace(cuda::Handle handle, u64 address, u64 bytes) override;
    int blas_gemm(cuda::Handle handle, const cuda::Gemm& gemm) override;
    double now_s() override { return clock_s_; }
    void sleep_until_s(double when) override { clock_s_ = std::max(clock_s_, when); }
    std::optional<std::string> nvidia_smi(const std::string& uuid, const std::string& query) override;
    u64 own_pid() override { return 4242; }

    int load() override;
    int rms_norm(const RmsNormArgs& a, void* stream) override;
    int rope(const RopeArgs& a, void* stream) override;
    int kv_append(const KvAppendArgs& a, void* stream) override;
    int attention(const AttentionArgs& a, Workspace work, void* stream) override;
    int gated_act(const GatedActArgs& a, void* stream) override;
    int embed(const EmbedArgs& a, void* stream) override;
    int gather(const GatherArgs& a, void* stream) override;
    int sample(const SampleArgs& a, Workspace work, void* stream) override;
    int fill(const FillArgs& a, void* stream) override;
    int checksum(u64 address, u64 bytes, Workspace work, void* stream) override;
    int provoke(DeviceErrc code, void* stream) override;

  private:
    using Work = std::function<void()>;
    struct Range {
        u64 bytes = 0;
        std::map<u64, std::pair<u64, u64>> mapped;   // address -> bytes, handle
    };
    struct Memory {
        u64 bytes = 0;
        u64 mappings = 0;
        bool released = false;
    };

    // Counts the call and returns the number it must fail with, 0 to go on.
    int enter(const std::string& name, bool blas = false);
    int refuse(int error);               // remembers it as the last error
    int finish();                        // all work so far is done; a fault of it shows now
    bool room_for(u64 bytes) const;
    u64 new_id() { return next_id_ += 16; }
    bool knows_stream(cuda::Handle stream) const;
    // Runs work now, or keeps it for the graph being captured.
    int start(const std::string& name, cuda::Handle stream, Work work);
    void drop_if_gone(u64 handle);

    const u64 total_bytes_;
    Plan plan_;
    u64 seen_ = 0, failures_ = 0;
    std::vector<std::string> names_;
    std::string failed_name_;
    int last_error_ = 0, sticky_ = 0;
    int pending_fault_ = 0;              // shows at the next synchronisation
    bool has_context_ = false, modules_loaded_ = false;
    double clock_s_ = 0;
    u64 next_id_ = 0x1000;
    std::map<u64, u64> allocations_;     // address -> bytes
    std::map<u64, Range> ranges_;
    std::map<u64, Memory> memory_;
    std::map<void*, u64> pinned_;
    std::set<u64> streams_, blas_;
    std::map<u64, bool> events_;         // recorded
    std::map<u64, std::vector<Work>> graphs_, execs_;
    u64 capturing_ = 0;
    std::vector<Work> captured_;
};

}  // namespace oomlab::test
