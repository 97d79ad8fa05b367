// The other end: copies what `oomlab serve` sends into a trace file of its own, which the window then
// reads like any other. Reconnects by itself and asks only for what it does not have yet.
#pragma once

#include <memory>
#include <string>

#include "ui/serve/protocol.hpp"

namespace oomlab::serve {

class Viewer {
  public:
    // Connects (at most a few seconds) and shakes hands. The copy goes into a new folder below the
    // system's temporary one and is removed with the object.
    // On failure: Error::environment (nobody there) or Error::parse (not oomlab, another version).
    static Result<std::unique_ptr<Viewer>> connect(const Address& address);
    ~Viewer();
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    // Takes what has come, never waits. `now_s` is any clock that goes on; it paces reconnecting.
    // Returns whether anything came.
    bool poll(double now_s);

    const std::string& path() const;     // of the copy; another one after a new run began
    std::string text() const;            // "live from gpu-box:8086"
    std::string problem() const;         // "" when all is well

  private:
    struct State;
    explicit Viewer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace oomlab::serve
