// The items that stand around the server, and the seven mistakes.
#include <fmt/format.h>

#include <algorithm>

#include "labs/field/preflight/checker.hpp"

namespace oomlab::field {

using check_text::gib;
using check_text::has;

void Checker::input_cap() {
    const char* title = "input length capped at the gateway";
    const std::string len = flags_.max_model_len
                                ? fmt::format("max_model_len {}", *flags_.max_model_len)
                                : "no max_model_len";
    if (!facts_.gateway_max_input)
        return (void)add("input_cap", title, State::cannot_know, len,
                         "the server's length limit is not a cap with a clear answer; the "
                         "gateway's is not in this file",
                         "give --gateway-max-input");
    const u64 cap = *facts_.gateway_max_input, out = facts_.gateway_max_output.value_or(0);
    if (flags_.max_model_len && cap + out > *flags_.max_model_len)
        return (void)add(
            "input_cap", title, State::fail,
            fmt::format("cap {} + output {} against {}", cap, out, *flags_.max_model_len),
            "requests pass the gateway that the server must refuse",
            fmt::format("cap at {} tokens",
                        *flags_.max_model_len > out ? *flags_.max_model_len - out : 0));
    add("input_cap", title, State::pass, fmt::format("{} tokens", cap), "given", "");
}

void Checker::expandable_segments() {
    const char* title = "expandable segments on";
    if (llama())
        return (void)add("expandable_segments", title, State::pass, "",
                         "this engine does not use PyTorch's allocator", "");
    std::string conf;
    for (const char* key : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
        if (auto it = r_.deployment.env.find(key); it != r_.deployment.env.end()) conf = it->second;
    const bool on = has(conf, "expandable_segments:true");
    const bool sleeps = flags_.other.count("--enable-sleep-mode") > 0;
    if (on && sleeps)
        return (void)add("expandable_segments", title, State::fail, conf,
                         "sleep mode's own allocator does not work with expandable segments",
                         "drop --enable-sleep-mode or the setting");
    add("expandable_segments", title, on ? State::pass : State::fail,
        conf.empty() ? "not set" : conf, on ? "set" : "fragments cannot be joined across segments",
        on       ? ""
        : sleeps ? "sleep mode excludes it: watch reserved - allocated instead"
                 : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

void Checker::container_limit() {
    const char* title = "container limit with headroom for host buffers";
    const auto limit =
        facts_.host_memory_bytes ? facts_.host_memory_bytes : r_.deployment.host_memory_limit_bytes;
    const u64 workers = llama() ? 0 : flags_.tensor_parallel_size * flags_.pipeline_parallel_size;
    // Measured sizes of processes that serve: the API process about 2 GiB, a worker about 3.
    double need =
        (llama() ? 1.0 : 2.0 + 3.0 * static_cast<double>(workers)) * static_cast<double>(kGiB);
    std::string parts =
        llama() ? "1 GiB process" : fmt::format("2 GiB API + {} x 3 GiB workers", workers);
    const double offload = (flags_.cpu_offload_gib + flags_.swap_space_gib) *
                           static_cast<double>(std::max<u64>(1, workers)) *
                           static_cast<double>(kGiB);
    if (offload > 0) need += offload, parts += " + " + gib(offload) + " offload and swap";
    if (budget_ != nullptr && llama() && budget_->host_weights_bytes > 0)
        need += static_cast<double>(budget_->host_weights_bytes),
            parts += " + " + gib(budget_->host_weights_bytes) + " weights on the host";
    if (llama() && flags_.other.count("--cache-ram") == 0)
        need += 8 * static_cast<double>(kGiB), parts += " + 8 GiB prompt cache (--cache-ram)";
    if (r_.deployment.shm_bytes)
        need += static_cast<double>(*r_.deployment.shm_bytes),
            parts += " + " + gib(*r_.deployment.shm_bytes) + " shared memory";
    const std::string number = fmt::format("about {} needed ({}){}", gib(need), parts,
                                           limit ? ", limit " + gib(*limit) : "");
    if (!limit) {
        const bool container = r_.deployment.kind == "kubernetes" ||
                               r_.deployment.kind == "compose" ||
                               r_.deployment.kind == "docker run";
        return (void)add(
            "container_limit", title, container ? State::fail : State::cannot_know, number,
            container ? "no memory limit is set: the node's memory is the limit, and its "
                        "pressure the killer"
                      : "a command says nothing about its cgroup",
            container ? "set a memory limit of the need plus 20 %" : "give --host-memory");
    }
    const bool enough = static_cast<double>(*limit) >= 1.2 * need;
    add("container_limit", title, enough ? State::pass : State::fail, number,
        enough ? "at least 20 % are left; the page cache of mapped weights is reclaimed, not "
                 "counted"
               : "less than 20 % are left above the processes' own memory",
        enough ? "" : "raise the limit to " + gib(1.2 * need));
}

void Checker::monitoring() {
    const char* title = "monitoring of KV use, reserved, allocated, preemptions";
    if (flags_.other.count("--disable-log-stats") > 0)
        return (void)add("monitoring", title, State::fail, "--disable-log-stats",
                         "the statistics are switched off", "remove --disable-log-stats");
    if (flags_.engine == Engine::sglang && flags_.other.count("--enable-metrics") == 0)
        return (void)add("monitoring", title, State::fail, "no --enable-metrics",
                         "this engine exports metrics only when asked", "--enable-metrics");
    if (llama() && flags_.other.count("--metrics") == 0)
        return (void)add("monitoring", title, State::fail, "no --metrics",
                         "this engine exports metrics only when asked", "--metrics");
    if (!facts_.monitoring_text)
        return (void)add("monitoring", title, State::cannot_know, "",
                         "the server exports them; whether anybody looks is not in this file",
                         "give --monitoring FILE (rules or dashboard)");
    const std::string& m = *facts_.monitoring_text;
    std::string absent;
    if (!has(m, "cache_usage_perc") && !has(m, "token_usage") && !has(m, "kv_cache_usage"))
        absent += "KV use ";
    if (!has(m, "preempt") && !has(m, "retract")) absent += "preemptions ";
    if (!has(m, "reserved") && !has(m, "DCGM_FI_DEV_FB_USED") && !has(m, "memory_used") &&
        !has(m, "memory.used"))
        absent += "device memory ";
    if (!absent.empty()) absent.pop_back();
    add("monitoring", title, absent.empty() ? State::pass : State::fail,
        absent.empty() ? "all named" : "missing: " + absent,
        absent.empty() ? "the file names them" : "the file does not name them",
        absent.empty() ? "" : "add " + absent);
}

void Checker::preemption_alert() {
    const char* title = "alert when the preemption rate passes 1 %";
    if (llama())
        return (void)add(
            "preemption_alert", title, State::pass, "",
            "this engine does not preempt: a full context ends requests, so alert on those", "");
    if (!facts_.monitoring_text)
        return (void)add("preemption_alert", title, State::cannot_know, "",
                         "alert rules are not in this file", "give --monitoring FILE");
    const std::string& m = *facts_.monitoring_text;
    const bool counter = has(m, "preempt") || has(m, "retract"),
               rule = has(m, "alert") || has(m, "expr:") || has(m, "threshold");
    add("preemption_alert", title, counter && rule ? State::pass : State::fail, "",
        counter && rule ? "a rule on preemptions is there" : "no rule on preemptions",
        counter && rule
            ? ""
            : "rate(vllm:num_preemptions_total) / rate(vllm:request_success_total) > 0.01");
}

void Checker::runbook() {
    const char* title = "a runbook entry for exit code 137";
    if (!facts_.runbook_text)
        return (void)add("runbook", title, State::cannot_know, "",
                         "the runbook is not in this file", "give --runbook FILE");
    const std::string& t = *facts_.runbook_text;
    const bool code = has(t, "137"), proof = has(t, "memory.events") || has(t, "dmesg") ||
                                             has(t, "OOMKilled") || has(t, "oom_kill");
    add("runbook", title, code && proof ? State::pass : State::fail, "",
        !code   ? "137 is not named"
        : proof ? "137 and the command that confirms it"
                : "137 is named, the command that confirms it is not",
        code && proof ? "" : "name 137 with dmesg -T, memory.events and kubectl describe pod");
}

namespace {

const CheckItem& item(const PreflightReport& r, const char* id) {
    for (const CheckItem& i : r.items)
        if (i.id == id) return i;
    return r.items.front();
}

}  // namespace

void Checker::seven() {
    const auto as = [&](const char* id, const char* title, const char* from) {
        CheckItem copy = item(r_, from);
        copy.id = id;
        copy.title = title;
        r_.mistakes.push_back(std::move(copy));
    };
    const auto own = [&](const char* id, const char* title, State s, std::string why,
                         std::string remedy) {
        r_.mistakes.push_back({id, title, s, "", std::move(why), std::move(remedy)});
    };
    as("squeezing", "raising utilization to squeeze out capacity", "utilization");
    as("untested_length", "not testing the longest realistic prompt", "longest_prompt");
    as("sequences_at_maximum", "max_num_seqs at the memory maximum", "max_num_seqs");
    const auto book = [&](const char* id, const char* title, bool good, const char* yes,
                          const char* no) {
        if (!facts_.runbook_text)
            own(id, title, State::cannot_know, "it shows in the runbook, which is not in this file",
                "give --runbook FILE");
        else
            own(id, title, good ? State::pass : State::fail, good ? yes : no, good ? "" : no);
    };
    const std::string t = facts_.runbook_text.value_or("");
    book("host_or_gpu", "confusing host and GPU out of memory",
         has(t, "137") && (has(t, "CUDA out of memory") || has(t, "traceback")),
         "the runbook tells 137 from a CUDA error",
         "tell exit 137 without a traceback from a CUDA error");
    book("memory_summary", "not reading memory_summary",
         has(t, "memory_summary") || has(t, "memory_stats"), "the runbook captures memory_summary",
         "capture torch.cuda.memory_summary() before the restart");
    as("no_input_cap", "no input cap", "input_cap");
    book("random", "treating out of memory as random",
         has(t, "correlat") || has(t, "prompt length") || has(t, "prompt tokens") ||
             has(t, "request shape"),
         "the runbook looks for what it coincides with",
         "write down the failing request's shape and what the failures have in common");
}

}  // namespace oomlab::field
