// The planted faults: real code paths that a scenario switches on. Each is what a server that has
// the bug would do; a repair of its own kind ([fix] apply) takes it away, a wrong one changes nothing.
//
// Memory that a fault keeps is taken through the ledger or from the device, like all other memory,
// so the figures show it and nothing else says so: no log line, no name in the trace.
#pragma once

#include <memory>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/server/config.hpp"
#include "labs/server/host/host_memory.hpp"
#include "labs/server/kv/kv_pool.hpp"
#include "labs/server/memory/ledger.hpp"
#include "labs/server/schedule/sequence.hpp"

namespace oomlab::server {

class Faults {
  public:
    Faults(const ServerConfig& config, Device& device, HostMemory& host);

    // The instance's memory went away with its process: nothing is kept over a restart.
    void forget(Ledger* ledger);
    void attach(Ledger& ledger, KvPool* pool) {
        ledger_ = &ledger;
        pool_ = pool;
    }
    Outcome<void> on_finished(const Request& request, double now_s, bool failed_or_cancelled);
    // Between steps, with serving time; dt since the last call.
    Outcome<void> on_step(double now_s, double dt_s);
    Outcome<void> on_library_init();
    // The message a wrapper would print for an error; empty: the truth is printed.
    std::string wrapped_message(const DeviceError& error) const;
    bool any() const { return !active_.empty(); }

  private:
    struct Active {
        FaultSpec spec;
        Prng prng;
        std::vector<Tensor> kept;
        double carried_bytes = 0;
        double next_item_s = 0;
        bool fired = false;
    };
    bool now(const Active& a, double t) const { return t >= a.spec.from_s && t < a.spec.until_s; }
    Outcome<void> keep(Active& a, u64 bytes, Owner owner, u32 request);
    Outcome<void> churn(Active& a, double now_s);

    const ServerConfig& config_;
    Device& device_;
    HostMemory& host_;
    Ledger* ledger_ = nullptr;
    KvPool* pool_ = nullptr;
    std::vector<Active> active_;
};

}  // namespace oomlab::server
