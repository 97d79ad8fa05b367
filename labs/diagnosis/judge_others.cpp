// Types 5 and 6: the host's kill, and what only looks like memory.
#include "labs/diagnosis/judge_parts.hpp"

namespace oomlab::diagnosis {

using trace::FailureKind;
using trace::Phase;

namespace {

// More than this is free, and still "out of memory": then it was not the memory.
constexpr u64 kPlenty = 256 * kMiB;
constexpr u32 kLongPrompt = 4096;

const char* cause_of(DeviceErrc code) {
    switch (code) {
        case DeviceErrc::illegal_address:
        case DeviceErrc::misaligned_address:
        case DeviceErrc::device_assert:
        case DeviceErrc::illegal_instruction:
        case DeviceErrc::invalid_address_space:
        case DeviceErrc::invalid_pc:
        case DeviceErrc::hardware_stack_error:
        case DeviceErrc::launch_failure: return "illegal_access";
        case DeviceErrc::invalid_configuration:
        case DeviceErrc::invalid_value:
        case DeviceErrc::cooperative_launch_too_large:
        case DeviceErrc::launch_out_of_resources: return "invalid_launch";
        case DeviceErrc::ecc_uncorrectable: return "hardware_fault";
        case DeviceErrc::insufficient_driver:
        case DeviceErrc::invalid_kernel_image:
        case DeviceErrc::no_kernel_image_for_device:
        case DeviceErrc::symbol_not_found: return "library_mismatch";
        default: return "fault_reported_as_memory";
    }
}

bool says_memory(const std::string& message) {
    std::string lower;
    for (const char ch : message) lower.push_back(ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch);
    return lower.find("out of memory") != std::string::npos || lower.find("alloc_failed") != std::string::npos;
}

}  // namespace

bool not_memory(const Case& c, Diagnosis& d) {
    const trace::FailureRecord& f = c.f;
    const auto code = static_cast<DeviceErrc>(f.code);
    if (f.kind == FailureKind::internal) {
        d.type = 6;
        d.cause = "pool_bookkeeping_check";
        d.confidence = 0.9;
        d.summary = "the server's own check failed; no memory was short";
        return true;
    }
    if (f.kind == FailureKind::host_alloc) {
        // The host's allocator said no: a limit on address space or commit, nobody was killed.
        d.type = 6;
        d.cause = "address_space_reservation";
        d.confidence = 0.7;
        d.evidence.push_back("the host's allocator refused: a limit on address space, and no kill");
        d.summary = "the host refused address space; the GPU is not short of memory";
        return true;
    }
    if (c.refused()) return false;
    if (f.kind == FailureKind::cuda_error || f.sticky != 0) {
        d.type = 6;
        d.confidence = 0.98;
        const bool renamed = says_memory(c.failure.message) && code != DeviceErrc::memory_allocation;
        d.cause = renamed ? "fault_reported_as_memory" : cause_of(code);
        d.evidence.push_back(fmt::format("CUDA said {} ({}), {}", errc_name(code), f.code,
                                         f.sticky != 0 ? "sticky: the context is lost until the process ends"
                                                       : "not sticky"));
        if (renamed) d.evidence.push_back("the message says \"out of memory\"; the error beneath it does not");
        d.evidence.push_back(fmt::format("{} was free on the device: memory was not short", human_bytes(f.device_free_bytes)));
        d.summary = fmt::format("{} with {} free: not a lack of memory", errc_name(code), human_bytes(f.device_free_bytes));
        return true;
    }
    // The error is cudaErrorMemoryAllocation. Was memory short?
    const bool free_enough = f.capped == 0 && f.device_free_bytes > c.asked_bytes + kPlenty;
    if (!free_enough) return false;
    d.type = 6;
    d.confidence = 0.9;
    const bool library = static_cast<DeviceCall>(f.call) == DeviceCall::create_blas;
    if (!library && c.asked_bytes >= kGiB) {
        d.cause = "single_allocation_cap";
        d.evidence.push_back(fmt::format("{} in one piece was refused while {} was free: a cap on one allocation",
                                         human_bytes(c.asked_bytes), human_bytes(f.device_free_bytes)));
    } else {
        d.cause = "fault_reported_as_memory";
        d.evidence.push_back(fmt::format("{} reported \"out of memory\" while {} was free{}",
                                         library ? "a library" : call_name(static_cast<DeviceCall>(f.call)),
                                         human_bytes(f.device_free_bytes),
                                         library ? ": an initialisation that failed for another reason" : ""));
    }
    d.summary = fmt::format("\"out of memory\" with {} free: not a lack of memory", human_bytes(f.device_free_bytes));
    return true;
}

void judge_host_kill(const RunFacts& facts, Diagnosis& d) {
    const HostFacts& h = facts.host;
    d.type = 5;
    d.confidence = 0.99;
    d.evidence = h.sentences;
    const Phase phase = facts.phase;
    d.evidence.push_back(fmt::format("{} was the last phase in the trace, and no failure is written down: nobody had time to",
                                     trace::phase_name(phase)));
    if (facts.host_points.size() >= 2) {
        d.evidence.push_back(fmt::format("{} of resident memory in the server at the end, {} at the start",
                                         human_bytes(facts.host_points.back().rss_bytes), human_bytes(facts.host_points.front().rss_bytes)));
    }
    // One prompt far beyond what came before it, just as the kernel struck.
    const u64 before = facts.arrivals > 1 ? facts.prompt_tokens_before_last / (facts.arrivals - 1) : 0;
    const bool long_prompt = facts.last_arrival && facts.last_arrival->second >= kLongPrompt &&
                             facts.last_arrival->second >= 5 * before;
    if (phase == Phase::host_load && facts.pinned_pool_begun) {
        d.cause = "pinned_pool_too_large";
        d.evidence.push_back("the pool of pinned host memory was being made");
        d.summary = fmt::format("{} of host memory while the pinned pool was made, {} allowed", human_bytes(h.peak_bytes),
                                human_bytes(h.limit_bytes));
        d.remedies.push_back({"bound the pinned pool (host.pinned_pool_limit)", minus(h.peak_bytes, 64 * kMiB), true});
    } else if (phase < Phase::serving) {
        d.cause = "host_checkpoint_copies";
        d.summary = fmt::format("{} of host memory during start-up, {} allowed", human_bytes(h.peak_bytes), human_bytes(h.limit_bytes));
        d.remedies.push_back({"stream the checkpoint shard by shard (host.load = \"shard_stream\")",
                              minus(h.peak_bytes, 16 * kMiB), true});
    } else if (long_prompt) {
        d.cause = "host_data_of_the_job";
        d.evidence.push_back(fmt::format("request {} with {} prompt tokens had just arrived", facts.last_arrival->first,
                                         facts.last_arrival->second));
        d.summary = "a very long prompt was being read on the host when the kernel killed it";
        d.remedies.push_back({"cap the prompt at the gateway (gateway.max_input_tokens)", 0, true});
    } else {
        d.cause = "host_memory_growth";
        const u64 done = facts.last_sample ? facts.last_sample->completed : 0;
        d.evidence.push_back(fmt::format("{} requests had completed: it grew while serving", done));
        d.summary = fmt::format("{} of host memory after {} requests, {} allowed", human_bytes(h.peak_bytes), done,
                                human_bytes(h.limit_bytes));
        d.remedies.push_back({"find what keeps host memory for each request", minus(h.peak_bytes, 64 * kMiB), true});
    }
    d.remedies.push_back({"raise the limit (host.memory_limit)", h.limit_bytes, true});
    std::stable_sort(d.remedies.begin(), d.remedies.end(), [](const Remedy& a, const Remedy& b) { return a.bytes > b.bytes; });
    if (!h.kernel_killed()) {
        d.evidence.push_back("a watcher of ours sent the signal at the limit: practice for type 5, not the kernel's proof");
    }
}

}  // namespace oomlab::diagnosis
