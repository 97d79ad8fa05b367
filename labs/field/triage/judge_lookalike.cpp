// Type 6: it looks like memory and is not.
#include <fmt/format.h>

#include "labs/field/triage/judge.hpp"

namespace oomlab::triage {
namespace {

using S = Signal;
using C = Cause;

// A fault counts when it is first: after an out of memory it is a consequence.
double unless_later(const Case& c, const Fact* fault, double strength) {
    const auto& d = c.failure;
    if (!d.any() || fault == nullptr) return strength;
    if (d.place.file == fault->place.file && d.place.line < fault->place.line)
        return strength * 0.55;
    return strength;
}

void simple(Case& c, S signal, Cause cause, double strength) {
    if (c.facts.has(signal)) {
        Claim& k = c.claim(cause, strength);
        c.prove_all(k, signal);
    }
}

void kills(Case& c) {
    const Facts& f = c.facts;
    const Fact* oom = f.first_of({S::kernel_kill, S::oom_killed, S::cgroup_oom_kill, S::slurm_oom,
                                  S::systemd_oom, S::ray_oom});
    if (const Fact* probe = f.first(S::probe_failed)) {
        const bool restart = f.find(S::probe_failed, [](const Fact& e) {
            return mentions(e, "will be restarted") || mentions(e, "watchdog timeout") ||
                   mentions(e, "worker timeout") || mentions(e, "estart");
        });
        const bool readiness_only = !restart && !f.find(S::probe_failed, [](const Fact& e) {
            return mentions(e, "iveness") || mentions(e, "tartup");
        });
        Claim& k = c.claim(C::killed_by_probe, oom ? 40 : readiness_only ? 38 : restart ? 94 : 84);
        Case::prove(k, f.find(S::operator_stop, [](const Fact& e) {
            return mentions(e, "KeyboardInterrupt") || mentions(e, "terminated");
        }));
        Case::prove(k, probe);
        Case::prove(k, f.last(S::probe_failed));
        Case::prove(k, f.first(S::oom_killed_false));
        if (!oom)
            c.rule_out(
                C::host_memory_too_small,
                "no kernel or runtime line says out of memory, and the events name the probe",
                probe);
    }
    const Fact* stop = f.first(S::operator_stop);
    const Fact* limit = f.first(S::time_limit);
    const Fact* not_oom = f.first(S::oom_killed_false);
    const Fact* exit = f.first_of({S::exit_137, S::signal_9, S::killed_bare});
    if (limit && !oom) {
        Claim& k = c.claim(C::killed_by_operator, 90);
        Case::prove(k, limit);
        Case::prove(k, exit);
    }
    if (stop && !oom && !f.has(S::probe_failed)) {
        const bool words = f.find(S::operator_stop, [](const Fact& e) {
            return !mentions(e, "KeyboardInterrupt") && !mentions(e, "hutting down");
        });
        Claim& k = c.claim(C::killed_by_operator, c.failure.any() ? 40
                                                  : not_oom       ? 88
                                                  : words         ? (exit ? 84 : 76)
                                                  : exit          ? 50
                                                                  : 40);
        Case::prove(k, stop);
        Case::prove(k, f.last(S::operator_stop));
        Case::prove(k, not_oom);
        Case::prove(k, exit);
        c.rule_out(
            C::host_memory_too_small,
            "a stop was asked for before the process ended, and no kernel line says out of memory",
            stop);
    } else if (not_oom && exit && !oom) {
        Claim& k = c.claim(C::killed_by_operator, 60);
        Case::prove(k, not_oom);
        Case::prove(k, exit);
    }
    // The engine ends its own tree after a child's error: Killed, without any kernel.
    const Fact* self = f.first(S::self_kill);
    if (self && f.first_of({S::killed_bare, S::exit_137}) && f.has(S::exception_root) && !oom) {
        Claim& k = c.claim(C::killed_by_operator, 46);
        Case::prove(k, f.first(S::exception_root));
        Case::prove(k, self);
        Case::prove(k, f.first_of({S::killed_bare, S::exit_137}), "the parent's own SIGKILL");
        c.rule_out(C::host_memory_too_small,
                   "an exception precedes the kill: the engine ended its own processes", self);
    }
}

void faults(Case& c) {
    const Facts& f = c.facts;
    for (const S s : {S::ecc, S::xid_hardware}) {
        if (const Fact* x = f.first(s)) {
            Claim& k = c.claim(C::hardware_fault, unless_later(c, x, 96));
            c.prove_all(k, s);
            c.rule_out(C::illegal_access, "the driver names a hardware fault", x);
        }
    }
    for (const S s : {S::illegal_access, S::device_assert, S::launch_failure}) {
        if (const Fact* x = f.first(s)) {
            Claim& k =
                c.claim(C::illegal_access, unless_later(c, x, s == S::launch_failure ? 80 : 93));
            c.prove_all(k, s);
            Case::prove(k, f.first(S::xid_software));
            if (f.first(S::device_assert) && s != S::device_assert)
                Case::prove(k, f.first(S::device_assert));
            c.rule_out(
                C::prefill_activation_spike,
                "the first error is a fault; an allocation that fails after it only reports it", x);
        }
    }
    if (const Fact* x = f.first(S::xid_software); x && !f.has(S::illegal_access)) {
        Claim& k = c.claim(C::illegal_access, unless_later(c, x, c.failure.any() ? 62 : 82));
        Case::prove(k, x);
    }
    // The fault came first and the engine calls the rest out of memory.
    const Fact* fault = f.first_of({S::illegal_access, S::device_assert, S::launch_failure});
    if (fault && c.failure.any() && fault->place < c.failure.place &&
        fault->place.file == c.failure.place.file && c.failure.torch) {
        Claim& k = c.claim(C::fault_reported_as_memory, 84);
        Case::prove(k, fault);
        Case::prove(k, *c.failure.torch, "reported after the fault");
    }
    if (const Fact* x = f.first(S::cumem_error);
        x && (!c.failure.any() || x->place < c.failure.place)) {
        Claim& k = c.claim(C::fault_reported_as_memory, c.failure.any() ? 93 : 72);
        Case::prove(k, x);
        if (c.failure.torch) Case::prove(k, *c.failure.torch, "the message that hides it");
    }
    if (const Fact* x = f.first(S::invalid_launch)) {
        Claim& k = c.claim(C::invalid_launch, unless_later(c, x, 92));
        c.prove_all(k, S::invalid_launch);
        if (!x->fields[1].empty())
            c.figures.push_back(
                fmt::format("{} bytes of shared memory were asked of a block, the card gives {}: a "
                            "property of the card, not of how full it is",
                            x->fields[0], x->fields[1]));
        c.rule_out(C::prefill_activation_spike,
                   "the launch was impossible; how much memory is free does not matter", x);
    }
    if (const Fact* x = f.first(S::address_reserve)) {
        Claim& k = c.claim(C::address_space_reservation, 96);
        Case::prove(k, x);
        Case::prove(
            k, f.find(S::host_total, [](const Fact& e) { return mentions(e, "system memory"); }));
        Case::prove(
            k, f.find(S::address_limit, [](const Fact& e) { return !mentions(e, "unlimited"); }));
        c.rule_out(C::vision_encoder_spike,
                   "the failing call reserves addresses; it would fail with an empty card too", x);
        c.rule_out(C::compute_buffer_underestimated,
                   "the failing call reserves addresses, not memory", x);
    } else if (const Fact* v = f.find(S::address_limit,
                                      [](const Fact& e) { return !mentions(e, "unlimited"); });
               v && f.first_of({S::cannot_allocate, S::device_oom, S::bad_alloc})) {
        Claim& k = c.claim(C::address_space_reservation, 86);
        Case::prove(k, v);
        Case::prove(k, f.first_of({S::cannot_allocate, S::device_oom, S::bad_alloc}));
    }
    // A Vulkan allocation that fails at gibibytes while more is free: the driver's limit for one.
    const Fact* vulkan =
        f.find(S::ggml_oom, [](const Fact& e) { return mentions(e, "ggml_vulkan"); });
    const Fact* room = f.first(S::device_free);
    if (vulkan && room) {
        const double asked = vulkan->number(0), free_bytes = room->number(1) * 1048576.0;
        double taken = 0;
        for (const Fact& e : f.shelf(S::llama_buffers).first)
            if (mentions(e, "Vulkan") && e.place < vulkan->place)
                taken += (e.fields[1].empty() ? e.number(0) : e.number(1)) * 1048576.0;
        if (asked >= 1.0 * 1073741824.0 && asked + taken < 0.92 * free_bytes) {
            Claim& k = c.claim(C::single_allocation_cap, 84);
            Case::prove(k, room);
            Case::prove(k, vulkan,
                        "it would have fitted: the driver refuses one allocation of this size");
            c.figures.push_back(
                fmt::format("{:.0f} MiB were asked in one piece, {:.0f} MiB were free and {:.0f} "
                            "MiB of it taken before",
                            asked / 1048576, free_bytes / 1048576, taken / 1048576));
        }
    }
    simple(c, S::single_cap, C::single_allocation_cap, 95);
    if (const Fact* x =
            f.find(S::library_mismatch, [](const Fact& e) { return !mentions(e, "cuda_v"); })) {
        Claim& k = c.claim(C::library_mismatch, unless_later(c, x, 92));
        Case::prove(k, x);
        c.prove_all(k, S::library_mismatch);
    }
    // A handle that gets no memory beside much free memory is not about memory.
    if (const Fact* x = f.first(S::cublas_alloc)) {
        const Fact* available =
            f.find(S::host_total, [](const Fact& e) { return mentions(e, "memory.available"); });
        const double free_bytes = available ? size_bytes(available->fields[0]).value_or(0) : 0;
        const Fact* smi = f.find(S::nvidia_smi_free, [](const Fact& e) {
            return e.number(1) > 0 && e.number(0) < 0.7 * e.number(1);
        });
        const bool board = f.has(S::jetson) || f.has(S::unified_memory);
        const Fact* mem = f.find(S::host_total, [](const Fact& e) {
            return mentions(e, "MemFree") || mentions(e, "MemAvailable");
        });
        const bool board_free = mem && mem->number(0) > 8e6;
        if (free_bytes > 4e9 || (smi && !mentions(*x, "NOT_INIT")) || (board && board_free) ||
            board_free) {
            Claim& k = c.claim(C::library_mismatch, free_bytes > 4e9 || board ? 86 : 60);
            Case::prove(k, f.first(S::library_mismatch));
            Case::prove(k, available);
            Case::prove(k, x, "the handle failed while memory was free");
            Case::prove(k, f.after(S::llama_in_function, x->place));
            Case::prove(k, mem);
            c.rule_out(C::weights_exceed_memory,
                       "much memory is free: the handle failed for another reason",
                       available ? available : mem);
        }
    }
}

void limits(Case& c) {
    const Facts& f = c.facts;
    if (const Fact* x = f.first(S::thread_limit)) {
        Claim& k = c.claim(C::thread_limit, unless_later(c, x, 94));
        c.prove_all(k, S::thread_limit);
        Case::prove(k, f.find(S::thread_limit, [](const Fact& e) { return !e.fields[0].empty(); }));
        Case::prove(k, f.first(S::ulimit));
        c.rule_out(C::host_memory_too_small,
                   "the refused resource is a thread or process; memory is free",
                   f.first(S::host_total));
    }
    if (const Fact* x = f.first(S::shm_full)) {
        Claim& k = c.claim(C::shm_too_small, 95);
        c.prove_all(k, S::shm_full);
        Case::prove(k, f.find(S::shm_full, [](const Fact& e) { return mentions(e, "/dev/shm"); }));
        Case::prove(k, f.first(S::shm_size));
        Case::prove(k, f.first(S::bus_error));
        c.rule_out(C::communication_failure,
                   "the collective failed because its shared memory segment could not be made", x);
    } else if (const Fact* b = f.first(S::bus_error)) {
        const Fact* size = f.first(S::shm_size);
        Claim& k = c.claim(C::shm_too_small, size ? 88 : 66);
        Case::prove(k, b);
        Case::prove(k, size);
    }
    if (const Fact* x = f.first(S::pool_leak_check)) {
        Claim& k = c.claim(C::pool_bookkeeping_check, 95);
        Case::prove(
            k, f.find(S::pool_leak_check, [](const Fact& e) { return mentions(e, "detected"); }));
        Case::prove(k, x);
        Case::prove(k, f.last(S::pool_leak_check), "the sums that do not add up");
        c.rule_out(C::leak_retained_requests,
                   "'memory leak' is the engine's count of slots, not the card's memory", x);
    }
}

void communication(Case& c) {
    const Facts& f = c.facts;
    const Fact* timeout = f.first(S::nccl_timeout);
    const Fact* error = f.first(S::nccl_error);
    const Fact* peer = f.first(S::peer_lost);
    const Fact* first = f.first_of({S::nccl_timeout, S::nccl_error, S::peer_lost});
    if (!first) return;
    const bool memory = c.failure.any() || f.has(S::nccl_oom) || f.has(S::kernel_kill);
    if (memory) {
        c.rule_out(C::communication_failure,
                   "an out of memory is on record: the waiting peers are its consequence", first);
        return;
    }
    Claim& k = c.claim(C::communication_failure, timeout ? 84 : error ? 74 : 56);
    Case::prove(k, timeout);
    Case::prove(k, error);
    Case::prove(k, peer);
    c.rule_out(C::prefill_activation_spike, "no line of any rank speaks of memory");
}

}  // namespace

void judge_lookalike(Case& c) {
    kills(c);
    faults(c);
    limits(c);
    communication(c);
    if (const Fact* x = c.facts.first(S::segfault); x && c.claims.empty()) {
        Claim& k = c.claim(C::illegal_access, 45);
        Case::prove(k, x, "a crash of the program; not proof of anything about memory");
    }
}

}  // namespace oomlab::triage
