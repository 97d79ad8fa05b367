#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include "kernels/base/result.hpp"
#include "ui/cli/command.hpp"
#include "ui/serve/server.hpp"
#include "ui/view_model/live_trace.hpp"

namespace oomlab::cli {
namespace {

volatile std::sig_atomic_t g_stop = 0;

Result<void> serve_trace(const std::string& what, const std::string& bind) {
    OOMLAB_TRY(path, view::find_trace(what));
    OOMLAB_TRY(address, serve::parse_address(bind));
    OOMLAB_TRY(server, serve::Server::open(path, address));
    char host[256] = "this-machine";
    ::gethostname(host, sizeof(host) - 1);
    std::printf("Serving %s on %s:%u, Ctrl-C ends it. On the machine with the display:\n%s", path.c_str(), address.host.c_str(),
                server->port(), serve::tunnel_lines(host, server->port()).c_str());
    if (address.host != "127.0.0.1" && address.host != "localhost" && address.host != "::1")
        std::fprintf(stderr, "oomlab: whoever reaches %s:%u can read this trace; the default, 127.0.0.1 with a tunnel, is safer\n",
                     address.host.c_str(), server->port());
    std::fflush(stdout);
    std::signal(SIGINT, [](int) { g_stop = 1; });
    std::signal(SIGTERM, [](int) { g_stop = 1; });
    while (g_stop == 0) server->turn(50);
    return {};
}

}  // namespace

void add_serve(CLI::App& app, int& exit_status) {
    struct Args {
        std::string what = ".", bind = "127.0.0.1:8086";
    };
    auto args = std::make_shared<Args>();
    auto* cmd = app.add_subcommand("serve", "Show a trace, live, to oomlab view on another machine");
    cmd->add_option("trace", args->what, "A trace, or a folder with runs (default: this one)");
    cmd->add_option("--bind", args->bind, "Where to listen (default 127.0.0.1:8086; port 0: any)");
    cmd->callback([args, &exit_status] {
        const auto done = serve_trace(args->what, args->bind);
        exit_status = done ? 0 : report(done.error());
    });
}

}  // namespace oomlab::cli
