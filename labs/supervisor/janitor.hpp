// Cleaning up that survives us. A journal names each thing before it is made; undoing it runs
// backwards. The supervisor undoes its own journal in the ordinary course of things; the janitor, a
// process forked before anything is made, holds a copy and does it when the supervisor has died.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::supervisor {

// One thing to undo. `kind`: 'g' a cgroup: kill what lives there, remove it; 'm' take the memory
// controller away from the children of that cgroup; 'l' a cgroup that we stepped aside into: move
// everybody back to its parent, remove it; 'f' a file: remove it; 'd' a folder: remove it if it is empty.
struct Undo {
    char kind;
    std::string path;
};
void undo(const Undo& what);

class Janitor {
  public:
    // Forks. On failure: Error::environment.
    static Result<Janitor> start();
    Janitor(Janitor&& other) noexcept;
    Janitor& operator=(Janitor&&) = delete;
    // Undoes what is still in the journal, dismisses the janitor and reaps it.
    ~Janitor();

    // Notes it with us and with the janitor. Call it before the thing is made.
    void note(Undo what);
    // Undoes the last `count` notes now, newest first.
    void undo_last(std::size_t count);
    // Keeps a file or a folder after all (the run ended well).
    void forget(const Undo& what);
    std::size_t notes() const { return journal_.size(); }
    int pid() const { return pid_; }

  private:
    Janitor(int pid, int socket) : pid_(pid), socket_(socket) {}
    void tell(char verb, const Undo& what);
    int pid_, socket_;
    std::vector<Undo> journal_;
};

// The name of a cgroup of ours says whose it is: pid namespace, pid, start time of the supervisor.
std::string own_group_name(int number);
// Removes cgroups in `parent` whose supervisor is gone and in which nothing lives. Never kills.
// Returns how many.
int sweep(const std::string& parent);

}  // namespace oomlab::supervisor
