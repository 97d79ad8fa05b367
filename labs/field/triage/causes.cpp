#include "labs/field/triage/causes.hpp"

#include "kernels/base/check.hpp"

namespace oomlab::triage {
namespace {

using C = Cause;
constexpr std::string_view kSmi = "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv";
constexpr std::string_view kCard = "nvidia-smi --query-gpu=index,memory.total,memory.used,memory.free --format=csv";
constexpr std::string_view kDmesg = "dmesg -T | grep -i -E 'killed process|oom'";
constexpr std::string_view kPod = "kubectl describe pod POD; kubectl get pod POD -o jsonpath='{..lastState.terminated}'";
constexpr std::string_view kEvents = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak";
constexpr std::string_view kSummary = "torch.cuda.memory_summary() just before the failure, or /metrics at that time";

constexpr CauseEntry kEntries[] = {
    {C::weights_exceed_memory, "weights_exceed_memory", 1, "the weights alone do not fit at this precision and sharding",
     "take a larger card, more tensor parallelism, or a quantized checkpoint; a lower memory fraction does not shrink weights",
     "check that the checkpoint is the precision and the sharding that you think (file sizes over ranks)",
     "work out weights per rank against the card before deploying (oomlab budget)", {kCard, "ls -l MODEL_DIR"}},
    {C::weights_leave_no_kv, "weights_leave_no_kv", 1, "the weights fit, but at this fraction nothing is left for the KV cache",
     "at start raise the memory fraction (the opposite of the advice for an OOM while serving), or lower max_model_len and max_num_batched_tokens",
     "quantize the weights or the KV cache, or shard over one more card",
     "keep the budget weights + activations + graphs + KV per deployment, and check it in CI", {kCard, "the engine's log from its first line"}},
    {C::kv_pool_smaller_than_max_model_len, "kv_pool_smaller_than_max_model_len", 1, "planning refused: one request of the maximum length needs more KV cache than the pool has",
     "set max_model_len to what fits (newer engines print the estimate; -1 or auto finds it)",
     "raise the memory fraction, use an 8-bit KV cache, or shard further if the length is needed",
     "choose max_model_len from traffic, not from the model's maximum", {kCard, "the lines 'Available KV cache memory' and 'GPU KV cache size'"}},
    {C::memory_fraction_above_free, "memory_fraction_above_free", 1, "the asked share of the card is more than is free at start",
     "find who holds the card and end it if it is a leftover of an earlier start; otherwise lower the fraction",
     "start one server per card, or give each a fraction that adds up to less than one",
     "have the unit wait for the old process to end before it starts the new one", {kSmi, "fuser -v /dev/nvidia*"}},
    {C::other_memory_on_device, "other_memory_on_device", 1, "another process, a desktop or the page cache holds memory that was counted on",
     "free the card (orphans of an earlier start first), or start the servers one after another",
     "fix the KV size explicitly where servers share a card, so that a neighbour does not change the plan",
     "one server per card or MIG slice; on unified memory leave room for the host", {kSmi, "free -g"}},
    {C::device_total_misreported, "device_total_misreported", 1, "the reported total or free memory is not what can be used (MIG, WSL, unified memory, driver)",
     "give the pool's size explicitly instead of a fraction, and turn expandable segments off on a MIG slice",
     "compare torch.cuda.mem_get_info() with nvidia-smi for the device that the process sees",
     "take an engine release that asks the runtime and not the management library", {"nvidia-smi -L", "python -c 'import torch; print(torch.cuda.mem_get_info())'"}},
    {C::profile_batch_too_large, "profile_batch_too_large", 1, "the dummy batch of the start-up profile (sequences, batched tokens, images) is too big",
     "lower max_num_batched_tokens and max_num_seqs, or limit images and their size per prompt; a higher fraction does not help",
     "turn chunked prefill on, so that the batch is bounded",
     "size the profile from real traffic", {"the full start command", kCard}},
    {C::sampler_warmup_logits, "sampler_warmup_logits", 1, "logits of max_num_seqs times the vocabulary do not fit at warm-up",
     "lower max_num_seqs (256 instead of 1024), or lower the memory fraction a little",
     "after an upgrade compare the engine's defaults: max_num_seqs has moved between releases",
     "set max_num_seqs explicitly, at 70 to 80% of what memory allows", {"the full start command", kCard}},
    {C::cuda_graphs_unbudgeted, "cuda_graphs_unbudgeted", 1, "CUDA graph capture was not, or not enough, in the budget",
     "lower the memory fraction by the graphs' share of the card, or capture fewer sizes; enforce eager to prove it",
     "read the estimated and the actual size of graphs in the start log",
     "keep one or two GiB outside the fraction on engines that do not budget graphs", {"the lines 'Graph capturing finished' and 'Estimated CUDA graph memory'", kCard}},
    {C::engine_limits_too_large, "engine_limits_too_large", 1, "the engine was built or set for a batch or length whose buffers do not fit",
     "rebuild with a smaller max_batch_size, max_num_tokens or max input length",
     "read 'execution context memory' and 'engine size': both are fixed at build time",
     "build for the limits that traffic needs", {"the build command", kCard}},
    {C::auxiliary_model_unbudgeted, "auxiliary_model_unbudgeted", 1, "a draft model, MTP head, adapter or encoder was not counted in the plan",
     "leave more room (lower fraction, smaller context or micro-batch), or switch the second model off to prove it",
     "take a release whose planner counts it", "add the second model's weights, KV and buffers to the budget", {"the full start command", kCard}},
    {C::prefill_activation_spike, "prefill_activation_spike", 2, "a prompt's activations exceed what was profiled",
     "cap the prompt length at the gateway and lower max_num_batched_tokens; lower the memory fraction by 0.03 to 0.05",
     "turn chunked prefill on, which bounds the activations",
     "test with the longest accepted prompt at the largest batch", {"the prompt length of the failing request and of the longest that passed", kSummary}},
    {C::logits_for_prompt_tokens, "logits_for_prompt_tokens", 2, "logits or log-probabilities are kept for every prompt token",
     "switch prompt log-probabilities (echo, context logits, logits_all) off, or send shorter prompts for them",
     "leave room: prompt tokens times vocabulary times 4 bytes, and copies of it",
     "refuse the option at the gateway above a length", {"the failing request's parameters", kSummary}},
    {C::attention_scores_quadratic, "attention_scores_quadratic", 2, "attention scores are written out: no fused attention on that path",
     "install and select a fused attention for this path (vision towers choose their own)",
     "until then cap the tokens of one image or prompt",
     "log at start which attention each part uses, and refuse to start on a fallback", {"pip list | grep -i -E 'flash|xformers|torch'", "the attention backend lines of the start log"}},
    {C::vision_encoder_spike, "vision_encoder_spike", 2, "image or video tokens of one request",
     "cap the image size, frames and number of images per request", "downscale before sending",
     "profile with the largest accepted image", {"the size of the image or video of the failing request", kSummary}},
    {C::compute_buffer_underestimated, "compute_buffer_underestimated", 2, "work buffers grow with the context and were not planned",
     "leave a margin: fewer offloaded layers, a smaller context or micro-batch",
     "take a newer release, whose estimate counts the buffer",
     "send one longest prompt as part of the health check", {"the load log with buffer sizes", kCard}},
    {C::kv_exhausted_preemption, "kv_exhausted_preemption", 3, "the KV pool is full; the engine preempts, retracts or recomputes: slow, not dead",
     "lower the number of concurrent sequences, or add a replica", "enlarge the pool (8-bit KV cache, higher fraction), shorten contexts",
     "alert when more than 1% of requests are preempted", {"curl -s SERVER/metrics | grep -E 'preempt|cache_usage|waiting'", "the scheduler's stat lines around the time"}},
    {C::kv_exhausted_no_preemption, "kv_exhausted_no_preemption", 3, "the KV pool is full and nobody is, or can be, preempted: error or death",
     "lower concurrency and prompt length so that the pool does not fill", "use an engine or setting that preempts instead",
     "cap length times concurrency below the pool at the gateway", {"curl -s SERVER/metrics", "the scheduler's lines before the failure"}},
    {C::kv_overcommitted_admission, "kv_overcommitted_admission", 3, "more was admitted than the pool can finish",
     "reserve more tokens for output (SGLang: schedule conservativeness, reserved decode tokens) or admit fewer requests",
     "cap output length", "size admission by the longest output, not by the mean", {"curl -s SERVER/metrics", "the scheduler's lines before the failure"}},
    {C::kv_reserved_unused, "kv_reserved_unused", 3, "blocks are reserved for output that never comes: the pool is idle but closed",
     "use a policy that admits by use (MAX_UTILIZATION), or cap max_tokens", "set max_tokens from traffic",
     "watch used against reserved blocks", {"the scheduler policy and the max_tokens of the requests", "the engine's iteration statistics"}},
    {C::request_larger_than_pool, "request_larger_than_pool", 3, "one request can never fit; the queue stands still",
     "drop that request; lower max_model_len below the pool's tokens", "enlarge the pool",
     "reject at the gateway what can never fit", {"the length of the request at the head of the queue", "the line 'GPU KV cache size'"}},
    {C::swap_pool_exhausted, "swap_pool_exhausted", 3, "preemption's own swap space is full",
     "raise the swap space, or lower n and the number of sequences", "use recomputation instead of swapping",
     "bound n and best_of at the gateway", {"free -h", "the line '# GPU blocks, # CPU blocks'"}},
    {C::fragmentation, "fragmentation", 3, "enough is free, but not in one piece",
     "set PYTORCH_ALLOC_CONF=expandable_segments:True", "restart in a quiet hour; keep shapes few (chunked prefill, fixed batch sizes)",
     "watch reserved minus allocated", {kSummary, "torch.cuda.memory._dump_snapshot()"}},
    {C::leak_retained_requests, "leak_retained_requests", 4, "objects of finished work are kept",
     "restart on a schedule as a stopgap", "find what holds them (a snapshot at two times, gc referrers), error paths first",
     "a soak test that compares memory before and after N requests", {"memory_allocated and memory_reserved every minute for an hour", "torch.cuda.memory._dump_snapshot() at two times"}},
    {C::cache_without_eviction, "cache_without_eviction", 4, "a cache or queue only grows",
     "switch the cache off or give it a size", "take a release that bounds it",
     "every cache has a limit in bytes and a metric", {"the cache's settings and entry count at two times", "ps -o rss= -p PID every minute"}},
    {C::fragmentation_growth, "fragmentation_growth", 4, "reserved minus allocated grows",
     "set PYTORCH_ALLOC_CONF=expandable_segments:True, restart", "call empty_cache only outside the hot path; reduce the number of shapes",
     "alert on reserved minus allocated", {"memory_allocated and memory_reserved every minute for an hour", kSummary}},
    {C::growth_outside_allocator, "growth_outside_allocator", 4, "the device's use grows while the allocator's figures are flat",
     "restart on a schedule; note what else runs on each request (communicators, handles, graphs, other libraries)",
     "compare nvidia-smi per process with memory_reserved at two times",
     "export the difference as a metric", {kSmi, "memory_reserved at the same times"}},
    {C::host_memory_growth, "host_memory_growth", 4, "resident host memory grows until a limit",
     "restart on a schedule; raise the limit only to gain time", "profile the host heap (memray, heaptrack) over one hour",
     "alert on the resident size's slope", {"ps -o rss= -p PID every minute for an hour", kEvents}},
    {C::host_checkpoint_copies, "host_checkpoint_copies", 5, "the checkpoint, or several copies of it, in host memory",
     "raise the host limit, or load with fewer workers at once", "use safetensors with memory mapping, or a pre-sharded checkpoint",
     "stream shard by shard; count ranks times shard size in the limit", {kDmesg, "ls -l MODEL_DIR; free -g"}},
    {C::host_cache_over_limit, "host_cache_over_limit", 5, "a host-side cache is sized beyond the container or machine",
     "give the cache an explicit size below the limit, or raise the limit", "add caches, weights and the process up against the limit",
     "derive the cache's size from the container's limit", {kPod, kEvents}},
    {C::pinned_pool_too_large, "pinned_pool_too_large", 5, "pinned or swap buffers are larger than the host can give",
     "lower the swap space, offload or pinned pool", "add RAM, or use pageable memory for it",
     "pinned memory counts against the container: put it in the budget", {"grep -E 'MemTotal|MemAvailable' /proc/meminfo", "ulimit -l"}},
    {C::pinned_memory_limit, "pinned_memory_limit", 5, "page-locked memory is limited (WSL, memlock), and that surfaces as a CUDA error",
     "turn pinned memory off, or raise the memlock limit", "under WSL keep pinned pools small",
     "check ulimit -l in the unit or container", {"ulimit -l; uname -r", kCard}},
    {C::host_compile_jobs, "host_compile_jobs", 5, "compilers started by the server eat the host's memory",
     "set MAX_JOBS (or the library's own limit) to 2 or so", "use a prebuilt kernel package, keep the cache on a volume",
     "build kernels in the image, not at start", {kDmesg, "the number of cores and the memory limit"}},
    {C::host_commit_limit, "host_commit_limit", 5, "the system's commit limit is reached (Windows page file, strict overcommit)",
     "enlarge the page file, or relax vm.overcommit_memory", "load with memory mapping and fewer processes",
     "give the machine a page file of the model's size", {"grep -i commit /proc/meminfo; cat /proc/sys/vm/overcommit_memory", "the page file's size"}},
    {C::host_memory_too_small, "host_memory_too_small", 5, "the machine, VM or container is smaller than the job",
     "raise the container's or VM's memory, or take a smaller model", "load with memory mapping, offload fewer layers to the CPU",
     "compare the checkpoint with the limit before starting", {kDmesg, "free -g; " "cat /sys/fs/cgroup/memory.max"}},
    {C::host_data_of_the_job, "host_data_of_the_job", 5, "results or inputs are kept on the host by the user's own code",
     "write results out as they come, in batches", "keep what is needed (not all logits), in a smaller type",
     "bound what a job keeps", {kDmesg, "the loop around the engine's call"}},
    {C::killed_by_probe, "killed_by_probe", 6, "a liveness, readiness or startup probe, or another watchdog, sent the kill",
     "give a startup probe that allows the loading time (failureThreshold times period)", "measure the time to ready with a cold cache",
     "probe with a generation, with its own time-out", {kPod, "kubectl get events --sort-by=.lastTimestamp"}},
    {C::killed_by_operator, "killed_by_operator", 6, "a stop, an eviction, a job's limit or the parent's own SIGKILL ended it",
     "find who sent it: shell history, the orchestrator's events, the batch system's record", "give a longer grace period if it was stopping",
     "handle SIGTERM and log it", {"docker events, journalctl -u UNIT, sacct -j JOB", kDmesg}},
    {C::address_space_reservation, "address_space_reservation", 6, "virtual address space ran out, not memory",
     "build or run with a smaller reservation (or without the virtual-memory pool)", "lift ulimit -v; 64-bit processes on small boards have less",
     "take a release that falls back", {"ulimit -v; uname -a", kCard}},
    {C::fault_reported_as_memory, "fault_reported_as_memory", 6, "another error is wrapped or renamed as out of memory",
     "look at the first error, not at the last: more memory does not help", "rerun with CUDA_LAUNCH_BLOCKING=1",
     "take the release that reports the first error", {"the log from 50 lines before the message", "CUDA_LAUNCH_BLOCKING=1 and the same request"}},
    {C::illegal_access, "illegal_access", 6, "an illegal or misaligned address, or a device-side assert",
     "restart the process: the fault is sticky", "rerun with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer, check token ids and lengths",
     "report it to the kernel's project with the smallest input", {"dmesg -T | grep -i xid", "CUDA_LAUNCH_BLOCKING=1 and the same request"}},
    {C::invalid_launch, "invalid_launch", 6, "an impossible grid, block or amount of shared memory",
     "make the batch or block sizes smaller, or take a kernel for this card", "compare the asked shared memory with the card's limit",
     "test kernels on the smallest supported card", {"the line with 'Required' and 'Hardware limit'", "nvidia-smi --query-gpu=name,compute_cap --format=csv"}},
    {C::hardware_fault, "hardware_fault", 6, "failing memory, a lost bus or another fault of the card",
     "drain the node, reset or replace the card", "run the vendor's diagnostics while it is idle",
     "watch Xid and ECC counters", {"dmesg -T | grep -i xid", "nvidia-smi -q -d ECC,ROW_REMAPPER"}},
    {C::thread_limit, "thread_limit", 6, "threads, processes or file handles ran out",
     "raise ulimit -u / -n or the pids limit", "set OMP_NUM_THREADS and worker counts to the cores you have",
     "put the limits into the unit or container", {"ulimit -a; cat /sys/fs/cgroup/pids.max", "ps -eLf | wc -l"}},
    {C::shm_too_small, "shm_too_small", 6, "the shared memory mount is too small",
     "--shm-size=10g or --ipc=host; in Kubernetes an emptyDir with medium Memory at /dev/shm", "count it against the memory limit",
     "check df /dev/shm at start", {"df -h /dev/shm", "NCCL_DEBUG=WARN"}},
    {C::single_allocation_cap, "single_allocation_cap", 6, "the driver caps a single allocation, whatever is free",
     "make the largest buffer smaller (context, micro-batch) or split it over devices", "see whether the backend has a switch for large buffers",
     "ask the device for its limit before planning", {"vulkaninfo | grep -i maxMemoryAllocationSize, or clinfo | grep -i 'max.*alloc'", "the load log with buffer sizes"}},
    {C::library_mismatch, "library_mismatch", 6, "driver, toolkit and build do not go together",
     "use the build for this driver and board", "compare the driver's CUDA version with the build's",
     "pin driver and image together", {"nvidia-smi; nvcc --version; ldd BINARY", "python -m torch.utils.collect_env"}},
    {C::pool_bookkeeping_check, "pool_bookkeeping_check", 6, "the engine's own accounting check failed; memory is fine",
     "restart; do not add memory", "take a release with the accounting fix, and report the sums",
     "none: it is the engine's bug", {"the line with available, evictable and protected sizes", "the engine's version and flags"}},
    {C::communication_failure, "communication_failure", 6, "a collective timed out or a peer was lost, with no memory evidence",
     "look at the other ranks' logs: the first one's error is the cause", "NCCL_DEBUG=INFO, check links and the fabric",
     "watch every rank's log in one place", {"the logs of all ranks", "nvidia-smi topo -m; ibstat"}},
    {C::self_imposed_cap, "self_imposed_cap", 2, "a per-process share of memory is the limit, not the card",
     "raise or remove the fraction (set_per_process_memory_fraction, CUDA_MEMORY_FRACTION, an MPS or vGPU limit)",
     "find who sets it: code, environment or device plugin", "print the limit at start", {"env | grep -i -E 'fraction|limit|alloc_conf'", kCard}},
};
static_assert(std::size(kEntries) == kCauses);

}  // namespace

const CauseEntry& entry(Cause cause) {
    const auto& e = kEntries[static_cast<std::size_t>(cause)];
    OOMLAB_CHECK(e.cause == cause);
    return e;
}

std::span<const CauseEntry> all_causes() { return kEntries; }

std::string_view type_name(int type) {
    switch (type) {
        case 1: return "at start: weights and plan do not fit";
        case 2: return "activation spike";
        case 3: return "KV cache exhausted";
        case 4: return "accumulation: leak or fragmentation";
        case 5: return "host memory";
        case 6: return "not an out of memory";
        default: return "unknown";
    }
}

}  // namespace oomlab::triage
