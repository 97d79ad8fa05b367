#include "labs/field/preflight/checklist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace oomlab::field {
namespace {

using State = CheckState;

std::string gib(double bytes) { return fmt::format("{:.2f} GiB", bytes / static_cast<double>(kGiB)); }
std::string gib(u64 bytes) { return gib(static_cast<double>(bytes)); }
std::string gib(i64 bytes) { return gib(static_cast<double>(bytes)); }

bool has(const std::string& text, const char* part) {
    auto it = std::search(text.begin(), text.end(), part, part + std::char_traits<char>::length(part),
                          [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b)); });
    return it != text.end();
}

class Checker {
  public:
    Checker(PreflightReport& r) : r_(r), flags_(r.deployment.flags), facts_(r.facts), budget_(r.budget ? &*r.budget : nullptr) {}

    void twelve() {
        budget();
        utilization();
        model_length();
        sequences();
        chunked_prefill();
        input_cap();
        expandable_segments();
        longest_prompt();
        container_limit();
        monitoring();
        preemption_alert();
        runbook();
    }
    void seven();

  private:
    std::string spelled(const char* name) const { return flag_spelling(flags_.engine, name); }
    bool llama() const { return flags_.engine == Engine::llama_cpp; }
    CheckItem& add(const char* id, const char* title, State state, std::string number, std::string why, std::string remedy) {
        r_.items.push_back({id, title, state, std::move(number), std::move(why), std::move(remedy)});
        return r_.items.back();
    }
    std::string missing() const {
        std::string out;
        if (!facts_.shape) out = "--config (the model's config.json)";
        if (!facts_.gpu) out += (out.empty() ? "" : " and ") + std::string("--gpu");
        return "give " + out;
    }

    void budget() {
        if (budget_ == nullptr)
            return (void)add("budget", "budget computed before deploying", r_.budget_error.empty() ? State::cannot_know : State::fail, "", r_.budget_error.empty() ? "the model's shape or the card is not known" : r_.budget_error,
                             r_.budget_error.empty() ? missing() : "correct the flag");
        const Budget& b = *budget_;
        const std::string number = fmt::format("weights {}, pool {}, headroom {} of {}", gib(b.weights_bytes), gib(b.kv_pool_bytes), gib(b.headroom_bytes), gib(b.total_bytes));
        if (b.fits) return (void)add("budget", "budget computed before deploying", State::pass, number, fmt::format("it fits: {} tokens of KV", b.kv_tokens), "");
        std::string remedy;
        for (std::size_t i = 0; i < b.changes.size() && i < 3; ++i) remedy += (i > 0 ? ", or " : "") + b.changes[i].flag;
        add("budget", "budget computed before deploying", State::fail, number, b.reasons.empty() ? "it does not fit" : b.reasons.front(), remedy);
    }

    void utilization() {
        const char* title = "utilization with headroom (0.88 to 0.92)";
        if (llama()) {
            if (budget_ == nullptr) return (void)add("utilization", title, State::cannot_know, "", "this engine has no fraction; its headroom follows from its buffers", missing());
            const bool enough = budget_->headroom_bytes >= static_cast<i64>(kGiB);
            return (void)add("utilization", title, enough ? State::pass : State::fail, "headroom " + gib(budget_->headroom_bytes), "this engine has no fraction; 1 GiB is the margin that its own fit step keeps", enough ? "" : "a smaller -c, or fewer --gpu-layers");
        }
        std::string why;
        double u = flags_.gpu_memory_utilization.value_or(0);
        if (u <= 0 && budget_ != nullptr) u = budget_->resolved.fraction, why = "the engine's default";
        else if (u <= 0) u = flags_.engine == Engine::vllm ? 0.90 : 0.0, why = "the engine's default";
        else why = "given";
        if (u <= 0) return (void)add("utilization", title, State::cannot_know, "automatic", "the fraction follows from the card", "give --gpu");
        std::string number = fmt::format("{:.3g}", u);
        if (budget_ != nullptr) number += ", headroom " + gib(budget_->headroom_bytes);
        if (flags_.engine == Engine::sglang) {
            // The fraction leaves out activations and graphs: what they leave is the headroom.
            const bool known = budget_ != nullptr;
            const bool enough = known && budget_->headroom_bytes >= static_cast<i64>(kGiB);
            return (void)add("utilization", title, !known ? State::cannot_know : enough ? State::pass : State::fail, number, why + "; activations and graphs live outside of this engine's fraction", !known ? missing() : enough ? "" : "lower --mem-fraction-static");
        }
        if (u > 0.925) add("utilization", title, State::fail, number, why + fmt::format("; only {:.0f} % are left for the context, graphs and spikes that the profile did not see", 100 * (1 - u)), "--gpu-memory-utilization 0.90");
        else if (u < 0.875) add("utilization", title, State::pass, number, why + "; below 0.88: safe, and " + (budget_ != nullptr ? gib((0.90 - u) * static_cast<double>(budget_->total_bytes)) : std::string("memory")) + " of pool is given away", "");
        else add("utilization", title, State::pass, number, why, "");
    }

    void model_length() {
        const char* title = "max_model_len from traffic";
        const u64 own = facts_.shape ? facts_.shape->max_position_embeddings : 0;
        const std::string flag = spelled("max_model_len");
        if (flags_.max_model_len_auto) return (void)add("max_model_len", title, State::fail, "automatic", "the length then follows from memory, not from what is sent", flag + " with the longest prompt plus output of your traffic");
        if (!flags_.max_model_len) return (void)add("max_model_len", title, State::fail, own > 0 ? fmt::format("{} (the model's own)", own) : "the model's own", "it is not set: one request may take the whole length", flag + " with the longest prompt plus output of your traffic");
        const u64 len = *flags_.max_model_len;
        if (own > 0 && len >= own) return (void)add("max_model_len", title, State::fail, fmt::format("{} of the model's {}", len, own), "it is the model's maximum, not your traffic's", flag + " with the longest prompt plus output of your traffic");
        if (facts_.longest_prompt && *facts_.longest_prompt + facts_.gateway_max_output.value_or(0) > len)
            return (void)add("max_model_len", title, State::fail, fmt::format("{} for prompts of {}", len, *facts_.longest_prompt), "the longest prompt of your traffic does not fit", flag + fmt::format(" {}", *facts_.longest_prompt + facts_.gateway_max_output.value_or(1024)));
        add("max_model_len", title, State::pass, own > 0 ? fmt::format("{} of the model's {}", len, own) : fmt::format("{}", len), "set below the model's maximum", "");
    }

    // Sequences that the pool holds: of the mean length when it is known, else of the full length.
    std::optional<double> allowed_sequences() const {
        if (budget_ == nullptr || llama()) return std::nullopt;
        if (facts_.mean_tokens) return static_cast<double>(budget_->kv_tokens) / static_cast<double>(std::max<u64>(1, *facts_.mean_tokens));
        return budget_->max_concurrency;
    }

    void sequences() {
        const char* title = "max_num_seqs at 70 to 80 % of what memory allows";
        const auto allowed = allowed_sequences();
        if (llama()) return (void)add("max_num_seqs", title, State::pass, fmt::format("{} slots", flags_.max_num_seqs.value_or(1)), "the context is divided among the slots when it is allocated", "");
        if (!allowed) return (void)add("max_num_seqs", title, State::cannot_know, "", "the pool's size is not known", missing());
        const u64 seqs = budget_->resolved.max_num_seqs;
        const std::string flag = spelled("max_num_seqs");
        const std::string number = fmt::format("{} of {:.0f} {}", seqs, *allowed, facts_.mean_tokens ? fmt::format("of {} tokens each", *facts_.mean_tokens) : std::string("at full length"));
        const double share = static_cast<double>(seqs) / std::max(1e-9, *allowed);
        const std::string remedy = fmt::format("{} {}", flag, std::max<u64>(1, static_cast<u64>(*allowed * 0.75)));
        if (share <= 0.80) return (void)add("max_num_seqs", title, State::pass, number, fmt::format("{:.0f} % of what the pool holds", 100 * share), "");
        if (facts_.mean_tokens || share > 4) return (void)add("max_num_seqs", title, State::fail, number, fmt::format("{:.0f} % of what the pool holds: under load this preempts", 100 * share), facts_.mean_tokens ? remedy : remedy + ", or --mean-tokens here to judge by your own lengths");
        add("max_num_seqs", title, State::cannot_know, number, "at full length they do not fit; whether that happens depends on your lengths", "give --mean-tokens (prompt and output of your traffic), or " + remedy);
    }

    void chunked_prefill() {
        const char* title = "chunked prefill on";
        if (llama()) return (void)add("chunked_prefill", title, State::pass, fmt::format("ubatch {}", flags_.ubatch.value_or(512)), "prompts are always read in micro-batches", "");
        bool on = flags_.enable_chunked_prefill.value_or(true), known = flags_.enable_chunked_prefill.has_value();
        if (budget_ != nullptr) on = budget_->resolved.chunked_prefill, known = true;
        else if (!known && flags_.engine_version.empty()) known = true;   // every current version: on
        std::string number = budget_ != nullptr ? fmt::format("{} tokens a step", budget_->resolved.max_num_batched_tokens) : "";
        if (on) return (void)add("chunked_prefill", title, State::pass, number, flags_.enable_chunked_prefill ? "given" : "default of this version", "");
        if (budget_ != nullptr) {
            const WorstBatch w = worst_batch(*budget_);
            number = fmt::format("a step of {} tokens: {} against {} profiled", w.worst_tokens, gib(w.worst_bytes), gib(w.profiled_bytes));
        }
        add("chunked_prefill", title, State::fail, number, "a prompt is processed whole, however long it is", flags_.engine == Engine::sglang ? "--chunked-prefill-size 8192" : "--enable-chunked-prefill");
    }

    void input_cap() {
        const char* title = "input length capped at the gateway";
        const std::string len = flags_.max_model_len ? fmt::format("max_model_len {}", *flags_.max_model_len) : "no max_model_len";
        if (!facts_.gateway_max_input) return (void)add("input_cap", title, State::cannot_know, len, "the server's length limit is not a cap with a clear answer; the gateway's is not in this file", "give --gateway-max-input");
        const u64 cap = *facts_.gateway_max_input, out = facts_.gateway_max_output.value_or(0);
        if (flags_.max_model_len && cap + out > *flags_.max_model_len)
            return (void)add("input_cap", title, State::fail, fmt::format("cap {} + output {} against {}", cap, out, *flags_.max_model_len), "requests pass the gateway that the server must refuse", fmt::format("cap at {} tokens", *flags_.max_model_len > out ? *flags_.max_model_len - out : 0));
        add("input_cap", title, State::pass, fmt::format("{} tokens", cap), "given", "");
    }

    void expandable_segments() {
        const char* title = "expandable segments on";
        if (llama()) return (void)add("expandable_segments", title, State::pass, "", "this engine does not use PyTorch's allocator", "");
        std::string conf;
        for (const char* key : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
            if (auto it = r_.deployment.env.find(key); it != r_.deployment.env.end()) conf = it->second;
        const bool on = has(conf, "expandable_segments:true");
        const bool sleeps = flags_.other.count("--enable-sleep-mode") > 0;
        if (on && sleeps) return (void)add("expandable_segments", title, State::fail, conf, "sleep mode's own allocator does not work with expandable segments", "drop --enable-sleep-mode or the setting");
        add("expandable_segments", title, on ? State::pass : State::fail, conf.empty() ? "not set" : conf, on ? "set" : "fragments cannot be joined across segments",
            on ? "" : sleeps ? "sleep mode excludes it: watch reserved - allocated instead" : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    }

    void longest_prompt() {
        const char* title = "tested with the longest accepted prompt at the largest batch";
        if (budget_ == nullptr) return (void)add("longest_prompt", title, State::cannot_know, "", "the activation of that batch cannot be computed", missing());
        const Budget& b = *budget_;
        const WorstBatch w = worst_batch(b);
        const i64 more = static_cast<i64>(w.worst_bytes) - static_cast<i64>(w.profiled_bytes);
        const std::string number = fmt::format("{} tokens in one step: {}; profiled {}, headroom {}", w.worst_tokens, gib(w.worst_bytes), gib(w.profiled_bytes), gib(b.headroom_bytes));
        if (llama()) return (void)add("longest_prompt", title, b.headroom_bytes >= 0 ? State::pass : State::fail, number, "the compute buffer is reserved for the largest micro-batch; kernels still load on the first long prompt", "");
        if (more <= 0 && b.headroom_bytes >= 0) return (void)add("longest_prompt", title, State::pass, number, "computed: no step is larger than the profiled one; a run is still worth it", "");
        if (more <= b.headroom_bytes) return (void)add("longest_prompt", title, State::pass, number, "computed: the headroom holds the difference", "");
        const double per_token = w.worst_tokens > 0 ? static_cast<double>(w.worst_bytes) / static_cast<double>(w.worst_tokens) : 0;
        const u64 cliff = per_token > 0 ? static_cast<u64>(std::max(0.0, (static_cast<double>(b.headroom_bytes) + static_cast<double>(w.profiled_bytes)) / per_token)) : 0;
        add("longest_prompt", title, State::fail, number, more > 0 ? fmt::format("computed: it dies from about {} prompt tokens on", cliff) : "computed: the stack is larger than the card", more > 0 ? "chunked prefill on, or a shorter max_model_len" : "see the budget");
    }

    void container_limit() {
        const char* title = "container limit with headroom for host buffers";
        const auto limit = facts_.host_memory_bytes ? facts_.host_memory_bytes : r_.deployment.host_memory_limit_bytes;
        const u64 workers = llama() ? 0 : flags_.tensor_parallel_size * flags_.pipeline_parallel_size;
        // Measured sizes of processes that serve: the API process about 2 GiB, a worker about 3.
        double need = (llama() ? 1.0 : 2.0 + 3.0 * static_cast<double>(workers)) * static_cast<double>(kGiB);
        std::string parts = llama() ? "1 GiB process" : fmt::format("2 GiB API + {} x 3 GiB workers", workers);
        const double offload = (flags_.cpu_offload_gib + flags_.swap_space_gib) * static_cast<double>(std::max<u64>(1, workers)) * static_cast<double>(kGiB);
        if (offload > 0) need += offload, parts += " + " + gib(offload) + " offload and swap";
        if (budget_ != nullptr && llama() && budget_->host_weights_bytes > 0) need += static_cast<double>(budget_->host_weights_bytes), parts += " + " + gib(budget_->host_weights_bytes) + " weights on the host";
        if (llama() && flags_.other.count("--cache-ram") == 0) need += 8 * static_cast<double>(kGiB), parts += " + 8 GiB prompt cache (--cache-ram)";
        if (r_.deployment.shm_bytes) need += static_cast<double>(*r_.deployment.shm_bytes), parts += " + " + gib(*r_.deployment.shm_bytes) + " shared memory";
        const std::string number = fmt::format("about {} needed ({}){}", gib(need), parts, limit ? ", limit " + gib(*limit) : "");
        if (!limit) {
            const bool container = r_.deployment.kind == "kubernetes" || r_.deployment.kind == "compose" || r_.deployment.kind == "docker run";
            return (void)add("container_limit", title, container ? State::fail : State::cannot_know, number, container ? "no memory limit is set: the node's memory is the limit, and its pressure the killer" : "a command says nothing about its cgroup",
                             container ? "set a memory limit of the need plus 20 %" : "give --host-memory");
        }
        const bool enough = static_cast<double>(*limit) >= 1.2 * need;
        add("container_limit", title, enough ? State::pass : State::fail, number, enough ? "at least 20 % are left; the page cache of mapped weights is reclaimed, not counted" : "less than 20 % are left above the processes' own memory",
            enough ? "" : "raise the limit to " + gib(1.2 * need));
    }

    void monitoring() {
        const char* title = "monitoring of KV use, reserved, allocated, preemptions";
        if (flags_.other.count("--disable-log-stats") > 0) return (void)add("monitoring", title, State::fail, "--disable-log-stats", "the statistics are switched off", "remove --disable-log-stats");
        if (flags_.engine == Engine::sglang && flags_.other.count("--enable-metrics") == 0) return (void)add("monitoring", title, State::fail, "no --enable-metrics", "this engine exports metrics only when asked", "--enable-metrics");
        if (llama() && flags_.other.count("--metrics") == 0) return (void)add("monitoring", title, State::fail, "no --metrics", "this engine exports metrics only when asked", "--metrics");
        if (!facts_.monitoring_text) return (void)add("monitoring", title, State::cannot_know, "", "the server exports them; whether anybody looks is not in this file", "give --monitoring FILE (rules or dashboard)");
        const std::string& m = *facts_.monitoring_text;
        std::string absent;
        if (!has(m, "cache_usage_perc") && !has(m, "token_usage") && !has(m, "kv_cache_usage")) absent += "KV use ";
        if (!has(m, "preempt") && !has(m, "retract")) absent += "preemptions ";
        if (!has(m, "reserved") && !has(m, "DCGM_FI_DEV_FB_USED") && !has(m, "memory_used") && !has(m, "memory.used")) absent += "device memory ";
        if (!absent.empty()) absent.pop_back();
        add("monitoring", title, absent.empty() ? State::pass : State::fail, absent.empty() ? "all named" : "missing: " + absent, absent.empty() ? "the file names them" : "the file does not name them", absent.empty() ? "" : "add " + absent);
    }

    void preemption_alert() {
        const char* title = "alert when the preemption rate passes 1 %";
        if (llama()) return (void)add("preemption_alert", title, State::pass, "", "this engine does not preempt: a full context ends requests, so alert on those", "");
        if (!facts_.monitoring_text) return (void)add("preemption_alert", title, State::cannot_know, "", "alert rules are not in this file", "give --monitoring FILE");
        const std::string& m = *facts_.monitoring_text;
        const bool counter = has(m, "preempt") || has(m, "retract"), rule = has(m, "alert") || has(m, "expr:") || has(m, "threshold");
        add("preemption_alert", title, counter && rule ? State::pass : State::fail, "", counter && rule ? "a rule on preemptions is there" : "no rule on preemptions", counter && rule ? "" : "rate(vllm:num_preemptions_total) / rate(vllm:request_success_total) > 0.01");
    }

    void runbook() {
        const char* title = "a runbook entry for exit code 137";
        if (!facts_.runbook_text) return (void)add("runbook", title, State::cannot_know, "", "the runbook is not in this file", "give --runbook FILE");
        const std::string& t = *facts_.runbook_text;
        const bool code = has(t, "137"), proof = has(t, "memory.events") || has(t, "dmesg") || has(t, "OOMKilled") || has(t, "oom_kill");
        add("runbook", title, code && proof ? State::pass : State::fail, "", !code ? "137 is not named" : proof ? "137 and the command that confirms it" : "137 is named, the command that confirms it is not",
            code && proof ? "" : "name 137 with dmesg -T, memory.events and kubectl describe pod");
    }

    PreflightReport& r_;
    const ServerFlags& flags_;
    const PreflightFacts& facts_;
    const Budget* budget_;
};

const CheckItem& item(const PreflightReport& r, const char* id) {
    for (const CheckItem& i : r.items)
        if (i.id == id) return i;
    return r.items.front();
}

void Checker::seven() {
    const auto as = [&](const char* id, const char* title, const char* from) {
        CheckItem copy = item(r_, from);
        copy.id = id;
        copy.title = title;
        r_.mistakes.push_back(std::move(copy));
    };
    const auto own = [&](const char* id, const char* title, State s, std::string why, std::string remedy) { r_.mistakes.push_back({id, title, s, "", std::move(why), std::move(remedy)}); };
    as("squeezing", "raising utilization to squeeze out capacity", "utilization");
    as("untested_length", "not testing the longest realistic prompt", "longest_prompt");
    as("sequences_at_maximum", "max_num_seqs at the memory maximum", "max_num_seqs");
    const auto book = [&](const char* id, const char* title, bool good, const char* yes, const char* no) {
        if (!facts_.runbook_text) own(id, title, State::cannot_know, "it shows in the runbook, which is not in this file", "give --runbook FILE");
        else own(id, title, good ? State::pass : State::fail, good ? yes : no, good ? "" : no);
    };
    const std::string t = facts_.runbook_text.value_or("");
    book("host_or_gpu", "confusing host and GPU out of memory", has(t, "137") && (has(t, "CUDA out of memory") || has(t, "traceback")), "the runbook tells 137 from a CUDA error", "tell exit 137 without a traceback from a CUDA error");
    book("memory_summary", "not reading memory_summary", has(t, "memory_summary") || has(t, "memory_stats"), "the runbook captures memory_summary", "capture torch.cuda.memory_summary() before the restart");
    as("no_input_cap", "no input cap", "input_cap");
    book("random", "treating out of memory as random", has(t, "correlat") || has(t, "prompt length") || has(t, "prompt tokens") || has(t, "request shape"), "the runbook looks for what it coincides with", "write down the failing request's shape and what the failures have in common");
}

}  // namespace

const char* check_state_name(CheckState s) { return s == CheckState::pass ? "pass" : s == CheckState::fail ? "fail" : "cannot_know"; }

int PreflightReport::failed() const {
    int n = 0;
    for (const auto* list : {&items, &mistakes})
        for (const CheckItem& i : *list) n += i.state == CheckState::fail;
    return n;
}

PreflightReport check_deployment(const Deployment& deployment, const PreflightFacts& facts) {
    PreflightReport r;
    r.deployment = deployment;
    r.facts = facts;
    if (facts.shape && facts.gpu) {
        auto budget = compute_budget(*facts.shape, *facts.gpu, deployment.flags);
        if (budget) {
            find_changes(*budget, {});
            r.budget = std::move(*budget);
        } else {
            r.budget_error = budget.error().message;
        }
    }
    Checker checker(r);
    checker.twelve();
    checker.seven();
    return r;
}

}  // namespace oomlab::field
