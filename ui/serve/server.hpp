// Shows a trace to viewers on other machines, live or finished. Reads the file and nothing else, so it
// never slows the server whose trace it is.
//
// A viewer gets the whole history first, then what is new. One that falls behind by more than
// kLagBytes of new records is sent events only, until it has caught up: samples and maps are left out
// and counted, events never. Single-threaded; at most kMostViewers at a time.
#pragma once

#include <memory>
#include <string>

#include "ui/serve/protocol.hpp"

namespace oomlab::serve {

inline constexpr std::size_t kMostViewers = 8;
inline constexpr u64 kLagBytes = 8 * kMiB;

class Server {
  public:
    // Opens the trace and listens. Port 0: any free one. On failure: Error::io or Error::environment.
    static Result<std::unique_ptr<Server>> open(const std::string& trace, const Address& bind);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // One round: new records, new viewers, what the sockets take. Waits at most `wait_ms`.
    void turn(int wait_ms);

    u32 port() const;
    std::size_t viewers() const;
    bool finished() const;
    u64 samples_dropped() const;   // over all viewers

  private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// The line that opens a tunnel from a laptop, and the one to type after it.
std::string tunnel_lines(const std::string& this_host, u32 port);

}  // namespace oomlab::serve
