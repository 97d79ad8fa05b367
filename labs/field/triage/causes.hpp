// The closed catalogue of causes: id, type, meaning, what to do, what to ask for. A result names
// one of these or none; the list may grow, an id keeps its meaning.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace oomlab::triage {

enum class Cause : std::uint8_t {
    weights_exceed_memory,
    weights_leave_no_kv,
    kv_pool_smaller_than_max_model_len,
    memory_fraction_above_free,
    other_memory_on_device,
    device_total_misreported,
    profile_batch_too_large,
    sampler_warmup_logits,
    cuda_graphs_unbudgeted,
    engine_limits_too_large,
    auxiliary_model_unbudgeted,
    prefill_activation_spike,
    logits_for_prompt_tokens,
    attention_scores_quadratic,
    vision_encoder_spike,
    compute_buffer_underestimated,
    kv_exhausted_preemption,
    kv_exhausted_no_preemption,
    kv_overcommitted_admission,
    kv_reserved_unused,
    request_larger_than_pool,
    swap_pool_exhausted,
    fragmentation,
    leak_retained_requests,
    cache_without_eviction,
    fragmentation_growth,
    growth_outside_allocator,
    host_memory_growth,
    host_checkpoint_copies,
    host_cache_over_limit,
    pinned_pool_too_large,
    pinned_memory_limit,
    host_compile_jobs,
    host_commit_limit,
    host_memory_too_small,
    host_data_of_the_job,
    killed_by_probe,
    killed_by_operator,
    address_space_reservation,
    fault_reported_as_memory,
    illegal_access,
    invalid_launch,
    hardware_fault,
    thread_limit,
    shm_too_small,
    single_allocation_cap,
    library_mismatch,
    pool_bookkeeping_check,
    communication_failure,
    self_imposed_cap,
    count_
};
inline constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::count_);

struct CauseEntry {
    Cause cause;
    std::string_view id;
    int type;  // 1 … 6; of self_imposed_cap the usual one
    std::string_view meaning;
    std::string_view now, soon, for_good;
    std::array<std::string_view, 2> ask;  // commands whose output would decide; "" for none
};

const CauseEntry& entry(Cause cause);
std::span<const CauseEntry> all_causes();
std::string_view type_name(int type);

}  // namespace oomlab::triage
