// Type 5: host memory. First whether the host killed or refused, then what filled it.
#include <fmt/format.h>
#include <algorithm>

#include "kernels/base/bytes.hpp"
#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;

bool is_compiler(std::string_view comm) {
    for (const std::string_view name :
         {"cicc", "cc1plus", "ptxas", "nvcc", "ninja", "cudafe++", "c++", "g++", "clang", "ld",
          "cc1", "rustc", "hipcc", "collect2", "nvlink", "fatbinary", "lld"})
        if (comm == name || (name.size() > 3 && comm.starts_with(name))) return true;
    return false;
}

// A victim that may be the server or a part of it. A stranger's death in the same kernel log says
// nothing about a server that printed its own end.
bool is_ours(std::string_view comm) {
    for (const std::string_view part :
         {"python",   "pt_",      "vllm",   "ray",      "sglang", "llama",  "ollama",
          "text-gen", "trt",      "triton", "mpi",      "worker", "engine", "serve",
          "uvicorn",  "gunicorn", "torch",  "lmdeploy", "comfy",  "java",   "node"})
        if (mentions(comm, part)) return true;
    return is_compiler(comm);
}

struct Kill {
    const Fact* proof = nullptr;  // the strongest line
    double strength = 0;
    bool hard() const { return strength >= 85; }
};

Kill find_kill(const Facts& f) {
    struct Source {
        S signal;
        double strength;
    };
    constexpr Source kSources[] = {{S::kernel_kill, 97},       {S::cgroup_oom_kill, 95},
                                   {S::slurm_oom, 95},         {S::oom_killed, 94},
                                   {S::systemd_oom, 95},       {S::ray_oom, 93},
                                   {S::kernel_constraint, 93}, {S::kernel_invoked, 90},
                                   {S::systemd_oomd, 90},      {S::evicted, 86}};
    Kill kill;
    const bool own_end = f.torch_count != 0 || f.has(S::device_oom);
    for (const Source s : kSources) {
        const Fact* x = f.first(s.signal);
        if (s.signal == S::kernel_kill && own_end)
            x = f.find(S::kernel_kill, [](const Fact& e) { return is_ours(e.fields[1]); });
        if ((s.signal == S::kernel_constraint || s.signal == S::kernel_invoked) && own_end &&
            f.has(S::kernel_kill))
            continue;
        if (x && s.strength > kill.strength) kill = {x, s.strength};
    }
    return kill;
}

// What the host refused without a kill.
const Fact* find_refusal(const Facts& f) {
    return f.first_of({S::cpu_alloc, S::bad_alloc, S::numpy_alloc, S::python_memory_error,
                       S::cannot_allocate, S::host_alloc_failed, S::page_file,
                       S::needs_system_memory, S::compiler_killed});
}

void prove_kill(const Facts& f, Claim& k) {
    for (const S s :
         {S::kernel_kill, S::oom_killed, S::cgroup_oom_kill, S::slurm_oom, S::systemd_oom,
          S::ray_oom, S::ray_memory_line, S::systemd_oomd, S::evicted, S::kernel_constraint})
        Case::prove(k, f.first(s));
}

void what_filled_it(Case& c, double base, const Fact* refusal) {
    const Facts& f = c.facts;
    const Fact* kernel = f.first(S::kernel_kill);
    const auto start = [&](Cause cause, double strength) -> Claim& {
        Claim& k = c.claim(cause, 5, std::min(strength, base));
        if (refusal) Case::prove(k, refusal);
        return k;
    };
    // Compilers: the victim's name, or a compiler that says it was killed.
    const Fact* victim =
        f.find(S::kernel_kill, [](const Fact& e) { return is_compiler(e.fields[1]); });
    const Fact* died = f.first(S::compiler_killed);
    if (victim || died) {
        Claim& k = c.claim(C::host_compile_jobs, 96);
        Case::prove(k, f.first(S::compile_jobs));
        Case::prove(k, died);
        Case::prove(k, victim, "the victim is a compiler");
        if (!victim) prove_kill(f, k);
    } else if (f.has(S::compiler) && (f.has(S::compile_jobs) || f.count(S::compiler) >= 2) &&
               (kernel || f.has(S::oom_killed) || base > 80)) {
        Claim& k = start(C::host_compile_jobs, 82);
        Case::prove(k, f.first(S::compiler));
        Case::prove(k, f.first(S::compile_jobs));
        prove_kill(f, k);
    }
    // A host-side cache with a size.
    const Fact* cache = f.find(S::host_cache, [](const Fact& e) { return !e.fields[0].empty(); });
    if (!cache) cache = f.first(S::host_cache);
    const Fact* prompts =
        f.find(S::prompt_cache, [](const Fact& e) { return !e.fields[0].empty(); });
    const Fact* limit = f.find(
        S::memory_limit, [](const Fact& e) { return size_bytes(e.fields[0]).value_or(0) > 1e8; });
    if (cache || prompts || f.has(S::prompt_cache)) {
        Claim& k = start(C::host_cache_over_limit, 90);
        Case::prove(k, cache);
        Case::prove(k, prompts ? prompts : f.first(S::prompt_cache));
        Case::prove(k, limit);
        prove_kill(f, k);
        if (prompts && limit && !prompts->fields[2].empty()) {
            const double cap = prompts->number(2) * 1048576.0,
                         have = size_bytes(limit->fields[0]).value_or(0);
            if (have > 0 && cap > have)
                c.figures.push_back(fmt::format(
                    "the prompt cache may grow to {}, the container may use {}: the cache's limit "
                    "is above the container's",
                    human_bytes(static_cast<u64>(cap)), human_bytes(static_cast<u64>(have))));
        }
    }
    // Pinned pools and swap space.
    const Fact* pinned_frame = f.first(S::frame_pinned);
    const Fact* pinned_failed = f.first(S::host_alloc_failed);
    const Fact* swap_blocks =
        f.find(S::gpu_cpu_blocks, [](const Fact& e) { return e.number(1) > 0; });
    const bool wsl = f.has(S::wsl) || f.has(S::pinned_limit);
    const Fact* cuda_trouble = f.first_of({S::cuda_invalid_argument, S::device_oom});
    if ((pinned_failed || (pinned_frame && (cuda_trouble || refusal))) && !f.has(S::torch_oom)) {
        Claim& k = c.claim(wsl ? C::pinned_memory_limit : C::pinned_pool_too_large, 90);
        Case::prove(k, swap_blocks, "the swap space of the plan is pinned host memory");
        Case::prove(k, cuda_trouble, "the CUDA call failed for host memory");
        Case::prove(k, pinned_failed);
        Case::prove(k, pinned_frame);
        Case::prove(k, f.find(S::host_total, [](const Fact& e) {
            return mentions(e, "available") || mentions(e, "Mem:");
        }));
        Case::prove(k, f.first(S::host_total));
        Case::prove(k, f.first(S::wsl));
        Case::prove(k, f.first(S::pinned_limit));
    }
    if (const Fact* pinned = f.first(S::pinned)) {
        if (wsl && cuda_trouble && !f.has(S::torch_oom)) {
            Claim& k = c.claim(C::pinned_memory_limit, 92);
            Case::prove(k, pinned);
            Case::prove(k, cuda_trouble, "a CUDA error, while the card has memory free");
            Case::prove(k, f.first(S::nvidia_smi_free));
            Case::prove(k, f.first(S::wsl));
            Case::prove(k, f.first(S::pinned_limit));
            c.rule_out(C::prefill_activation_spike,
                       "the card has memory free: the refused memory is the host's",
                       f.first(S::nvidia_smi_free));
        } else if (base > 80) {
            Claim& k = start(C::pinned_pool_too_large, 84);
            Case::prove(k, pinned);
            prove_kill(f, k);
        }
    }
    // A refusal beside a limit on locked pages.
    if (refusal && f.has(S::pinned_limit) && !f.has(S::torch_oom)) {
        Claim& k = c.claim(C::pinned_memory_limit, 90);
        Case::prove(k, refusal);
        c.prove_all(k, S::pinned_limit);
    }
    // Growth until the limit.
    if (const Series* host = f.series.rising(Series::Kind::host)) {
        Claim& k = start(C::host_memory_growth, 88);
        c.prove_series(k, *host, "resident host memory rises until the kill");
        prove_kill(f, k);
    }
    // The checkpoint.
    const Fact* progress = f.last(S::loading_weights);
    const Fact* ready = f.first(S::serving_ready);
    const Fact* activity = f.first(S::serving_activity);
    const bool loading = progress && !ready && !activity;
    if (loading || (!ready && !activity && (f.has(S::checkpoint_file) || f.has(S::load_format)))) {
        const Fact* ranks = f.find(S::load_format, [](const Fact& e) {
            return mentions(e, "tensor_parallel_size=") && e.number(0) > 1;
        });
        const bool many = ranks || f.count(S::kernel_kill) > 1 || f.has(S::ray_memory_line);
        const bool format = f.find(S::checkpoint_file, [](const Fact& e) {
            return mentions(e, ".bin") || mentions(e, ".pth");
        }) || f.has(S::load_format);
        Claim& k = start(C::host_checkpoint_copies, many || format ? 90 : 76);
        Case::prove(k, f.first(S::load_format));
        Case::prove(k, f.find(S::engine_start,
                              [](const Fact& e) { return mentions(e, "tensor_parallel_size"); }));
        Case::prove(k, f.first(S::checkpoint_file));
        Case::prove(k, progress, "weights were being loaded, on the host");
        prove_kill(f, k);
        Case::prove(k, f.first(S::ray_maybe_oom));
        // A machine with less memory than the checkpoint needs no copies to fail.
        const Fact* total = f.first(S::host_total);
        const double have =
            total ? (mentions(*total, "kB") ? total->number(0) * 1024
                                            : size_bytes(total->fields[0]).value_or(0))
                  : 0;
        const double may = limit ? size_bytes(limit->fields[0]).value_or(0) : 0;
        const double room = may > 0 && (have <= 0 || may < have) ? may : have;
        const bool small = room > 0 && room < 34e9 && !many;
        if (small) {
            Claim& s = start(C::host_memory_too_small, format ? 84 : 88);
            Case::prove(s, total);
            Case::prove(s, limit);
            Case::prove(s, progress);
            prove_kill(f, s);
        }
    }
    if (const Fact* x = f.first(S::needs_system_memory)) {
        Claim& k = c.claim(C::host_memory_too_small, 95);
        Case::prove(k, x);
        if (!x->fields[1].empty())
            c.figures.push_back(
                fmt::format("{} are needed, {} are there", x->fields[0], x->fields[1]));
    }
    if (f.has(S::page_file)) {
        Claim& k = c.claim(C::host_commit_limit, 95);
        c.prove_all(k, S::page_file);
    }
    if (const Fact* x = f.find(S::cpu_alloc, [](const Fact& e) {
            return mentions(e, "not enough memory: you tried");
        })) {
        Claim& k = c.claim(C::host_commit_limit, 5, 80);
        Case::prove(k, x, "Windows' form of the refusal: memory could not be committed");
    }
    const Fact* limit_kb =
        f.find(S::commit_limit, [](const Fact& e) { return mentions(e, "CommitLimit"); });
    const Fact* used_kb =
        f.find(S::commit_limit, [](const Fact& e) { return mentions(e, "Committed_AS"); });
    const Fact* strict =
        f.find(S::commit_limit, [](const Fact& e) { return mentions(e, "overcommit"); });
    if (refusal &&
        (strict || (limit_kb && used_kb && used_kb->number(0) > 0.9 * limit_kb->number(0)))) {
        Claim& k = c.claim(C::host_commit_limit, 92);
        Case::prove(k, refusal);
        Case::prove(k, limit_kb);
        Case::prove(k, used_kb);
        Case::prove(k, strict);
    }
    if (const Fact* x =
            f.find(S::cannot_allocate, [](const Fact& e) { return mentions(e, "mmap"); });
        x && !strict && !limit_kb) {
        Claim& k = start(C::host_commit_limit, 64);
        Case::prove(k, x,
                    "a mapping was refused: the commit limit or a limit on addresses, rather than "
                    "used memory");
    }
    // The job's own data.
    const Fact* numpy = f.first(S::numpy_alloc);
    const Fact* data = f.first(S::user_data);
    if (numpy || (data && (refusal || base > 80))) {
        Claim& k = start(C::host_data_of_the_job, numpy && data ? 92 : numpy ? 84 : 90);
        Case::prove(k, data);
        Case::prove(k, numpy);
        prove_kill(f, k);
    }
    if (const Fact* job = f.last(S::offline_job); job && !f.has(S::serving_ready)) {
        Claim& k = start(C::host_data_of_the_job, 68);
        Case::prove(k, f.first(S::offline_job));
        Case::prove(k, job);
        prove_kill(f, k);
    }
    // Nothing tells what filled it.
    const bool served = ready || activity;
    Claim& k = start(served ? C::host_memory_growth : C::host_memory_too_small, served ? 58 : 62);
    prove_kill(f, k);
    Case::prove(k, limit);
    Case::prove(k, f.first(S::host_total));
    if (limit && !served) k.strength = std::max(k.strength, std::min(base, 70.0));
}

}  // namespace

void judge_host(Case& c) {
    const Facts& f = c.facts;
    const Kill kill = find_kill(f);
    const Fact* refusal = find_refusal(f);
    const Fact* pinned_frame = f.first(S::frame_pinned);
    const bool pinned_trouble = (pinned_frame || f.has(S::pinned)) &&
                                f.first_of({S::cuda_invalid_argument, S::device_oom}) &&
                                !f.has(S::torch_oom);
    if (kill.proof) {
        if (kill.hard()) {
            c.rule_out(C::prefill_activation_spike,
                       "the host ended the process: whatever the engine printed, device memory is "
                       "not the cause",
                       kill.proof);
            c.rule_out(C::killed_by_operator,
                       "the kill is accounted for: it was for lack of memory", kill.proof);
        }
        what_filled_it(c, kill.strength, nullptr);
        for (Claim& k : c.claims)
            k.host_kill =
                k.host_kill || (kill.hard() && (k.type == 5 || k.cause == C::host_memory_growth));
        return;
    }
    if (refusal) {
        const double base =
            refusal->signal == S::cannot_allocate || refusal->signal == S::bad_alloc ? 84 : 92;
        what_filled_it(c, base, refusal);
        return;
    }
    if (pinned_trouble) {
        what_filled_it(c, 60, nullptr);
        // Without a kill or refusal only the pinned causes stand.
        std::erase_if(c.claims, [](const Claim& k) { return k.type == 5 && k.strength < 70; });
        return;
    }
    // A kill without a proof: while loading, or after growth, it is most likely the host's.
    const Fact* bare = f.first_of({S::killed_bare, S::exit_137, S::signal_9});
    const Fact* maybe = f.first(S::ray_maybe_oom);
    if (!bare && !maybe) return;
    const bool explained = f.has(S::operator_stop) || f.has(S::probe_failed) ||
                           f.has(S::time_limit) || f.has(S::self_kill) ||
                           f.has(S::oom_killed_false) || c.failure.any() ||
                           f.has(S::pool_leak_check);
    if (explained) return;
    const Fact* seen = bare ? bare : maybe;
    if (f.series.rising(Series::Kind::host)) {
        what_filled_it(c, 80, nullptr);
        for (Claim& k : c.claims)
            if (k.type == 5 || k.cause == C::host_memory_growth) Case::prove(k, seen);
        return;
    }
    const Fact* progress = f.last(S::loading_weights);
    const bool loading = progress && !f.has(S::serving_ready) && !f.has(S::serving_activity);
    if (loading || f.has(S::host_cache) || f.has(S::prompt_cache) || f.has(S::compiler) ||
        f.has(S::user_data)) {
        const bool sizes = f.has(S::checkpoint_file) || f.has(S::host_total) ||
                           f.has(S::memory_limit) || f.has(S::host_cache);
        what_filled_it(c, sizes ? 62 : 52, nullptr);
        for (Claim& k : c.claims)
            if (k.type == 5) {
                Case::prove(k, seen);
                k.against.push_back(
                    "no line of the kernel, the cgroup or the runtime proves that it was for lack "
                    "of memory");
            }
        return;
    }
    // A supervisor that says "perhaps out of memory" has looked at the exit status, no further.
    Claim& k = c.claim(C::host_memory_too_small, mentions(seen, "perhaps out of memory") ? 50 : 28);
    Case::prove(k, seen);
}

}  // namespace oomlab::triage
