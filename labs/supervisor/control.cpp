#include "labs/supervisor/control.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace oomlab::supervisor {

Result<std::unique_ptr<Control>> Control::create() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return fail(Error::environment("cannot make the control channel: " +
                                       std::generic_category().message(errno)));
    }
    return std::unique_ptr<Control>(new Control(fds[0], fds[1]));
}

Control::~Control() {
    ::close(own_fd_);
    ::close(server_fd_);
}

void Control::speed(double times) { send(fmt::format("speed {}\n", times)); }

void Control::send(std::string_view line) {
    // Short lines, so they go whole or not at all; never waits for a server that does not read.
    while (::send(own_fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {}
}

}  // namespace oomlab::supervisor
