#include "ui/serve/server.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "kernels/base/prng.hpp"
#include "labs/trace/reader.hpp"

namespace oomlab::serve {
namespace {

constexpr std::size_t kBufferBytes = 256 * kKiB;   // filled ahead for each socket
constexpr int kStatusEveryTurns = 20;

// A record where it stands in the mapped file.
struct Item {
    std::span<const std::byte> payload;
    i64 time_us;
    trace::RecordType type;
};

bool may_be_dropped(trace::RecordType type) {
    return type == trace::RecordType::sample || type == trace::RecordType::block_map ||
           type == trace::RecordType::kv_map;
}

struct Client {
    int fd = -1;
    bool greeted = false;
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::size_t sent = 0;          // of `out`
    std::size_t next = 0;          // the record it gets next
    std::size_t next_wall = 0;
    std::size_t history = 0;       // records that were there when it came: never left out
    u64 dropped = 0;
    int turns = 0;
    bool gone = false;

    template <class T>
    void put(const T& value) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        out.insert(out.end(), bytes, bytes + sizeof(T));
    }
    void put_record(FrameKind kind, const Item& item) {
        put(FrameHead{static_cast<u32>(item.payload.size()), kind, static_cast<std::uint16_t>(item.type), item.time_us});
        out.insert(out.end(), item.payload.begin(), item.payload.end());
    }
};

u64 inode_of(const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 ? static_cast<u64>(st.st_ino) : 0;
}

}  // namespace

struct Server::State {
    std::string path;
    int listener = -1;
    u32 port = 0;
    std::unique_ptr<trace::Reader> reader;
    u64 inode = 0, run = 0, log_bytes = 0, dropped = 0;
    std::vector<Item> items, wall;
    std::vector<u64> bytes_until;   // bytes of all items before each
    std::vector<Client> clients;

    ~State() {
        for (Client& c : clients)
            if (c.fd >= 0) ::close(c.fd);
        if (listener >= 0) ::close(listener);
    }

    void read() {
        if (const u64 now = inode_of(path); now != 0 && now != inode) reopen(now);
        reader->poll([this](const trace::RecordView& r) {
            bytes_until.push_back(bytes_until.empty() ? r.payload.size() : bytes_until.back() + r.payload.size());
            items.push_back({r.payload, r.time_us, r.type});
        });
        wall.clear();
        reader->wall([this](const trace::RecordView& r) { wall.push_back({r.payload, r.time_us, r.type}); });
        if (run == 0 && !items.empty()) run = run_of();
    }

    // One run from another: what its first record says, and when it began to be written is not known.
    u64 run_of() const {
        if (items.empty()) return 0;
        const auto& first = items.front().payload;
        return stable_hash({reinterpret_cast<const char*>(first.data()), first.size()}) | 1;
    }

    // The file was compacted (the same records in another file) or replaced by a new run.
    void reopen(u64 now) {
        auto fresh = trace::Reader::open(path);
        if (!fresh) return;
        const std::size_t had = items.size();
        const u64 before = run;
        items.clear();
        wall.clear();
        bytes_until.clear();
        reader = std::move(*fresh);
        inode = now;
        run = 0;
        reader->poll([this](const trace::RecordView& r) {
            bytes_until.push_back(bytes_until.empty() ? r.payload.size() : bytes_until.back() + r.payload.size());
            items.push_back({r.payload, r.time_us, r.type});
        });
        run = run_of();
        if (run == before && items.size() >= had) return;
        for (Client& c : clients) {
            c.next = c.next_wall = 0;
            c.history = items.size();
            if (c.greeted) c.put(FrameHead{0, FrameKind::new_run, 0, static_cast<i64>(run)});
        }
    }

    void accept_one() {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (clients.size() >= kMostViewers) {
            ::close(fd);
            return;
        }
        Client c;
        c.fd = fd;
        ServerHello hello;
        hello.trace_version = trace::kFormatVersion;
        hello.run = run;
        hello.log_bytes = log_bytes;
        const std::string name = std::filesystem::path(path).filename().string();
        std::memcpy(hello.name.data(), name.data(), std::min(name.size(), hello.name.size() - 1));
        c.put(hello);
        clients.push_back(std::move(c));
    }

    void hear(Client& c) {
        std::array<std::byte, 4096> bytes{};
        const ssize_t n = ::recv(c.fd, bytes.data(), bytes.size(), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c.gone = true;
        if (n <= 0) return;
        if (c.greeted) {   // a viewer has nothing more to say
            c.gone = true;
            return;
        }
        c.in.insert(c.in.end(), bytes.begin(), bytes.begin() + n);
        if (c.in.size() < sizeof(ViewerHello)) return;
        ViewerHello hello;
        std::memcpy(&hello, c.in.data(), sizeof(hello));
        if (hello.magic != kViewerMagic || hello.version != kProtocolVersion || c.in.size() > sizeof(hello)) {
            c.gone = true;
            return;
        }
        c.greeted = true;
        c.history = items.size();
        if (hello.run == run && hello.records <= items.size()) {
            c.next = static_cast<std::size_t>(hello.records);
            c.next_wall = static_cast<std::size_t>(hello.wall_records);
        } else if (hello.run != 0) {
            c.put(FrameHead{0, FrameKind::new_run, 0, static_cast<i64>(run)});
        }
    }

    void fill(Client& c) {
        if (!c.greeted) return;
        const u64 all = bytes_until.empty() ? 0 : bytes_until.back();
        while (c.out.size() - c.sent < kBufferBytes && c.next < items.size()) {
            const Item& item = items[c.next];
            const u64 behind = all - (c.next == 0 ? 0 : bytes_until[c.next - 1]);
            if (c.next >= c.history && behind > kLagBytes && may_be_dropped(item.type)) {
                ++c.dropped;
                ++dropped;
                // The count of records must still agree when it comes back: an empty frame stands in.
                c.put(FrameHead{0, FrameKind::record, 0, item.time_us});
            } else {
                c.put_record(FrameKind::record, item);
            }
            ++c.next;
        }
        while (c.out.size() - c.sent < kBufferBytes && c.next == items.size() && c.next_wall < wall.size())
            c.put_record(FrameKind::wall_record, wall[c.next_wall++]);
        if (++c.turns >= kStatusEveryTurns && c.out.size() - c.sent < kBufferBytes) {
            c.turns = 0;
            c.put(FrameHead{sizeof(Status), FrameKind::status, 0, 0});
            c.put(Status{c.dropped, reader->finished() && c.next == items.size() ? 1u : 0u, 0});
        }
    }

    void send(Client& c) {
        while (c.sent < c.out.size()) {
            const ssize_t n = ::send(c.fd, c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
            if (n < 0) {
                if (errno != EAGAIN && errno != EINTR) c.gone = true;
                return;
            }
            c.sent += static_cast<std::size_t>(n);
            if (c.sent == c.out.size()) {
                c.out.clear();
                c.sent = 0;
                fill(c);
            }
        }
    }
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(const std::string& path, const Address& bind) {
    auto state = std::make_unique<State>();
    state->path = path;
    OOMLAB_TRY(reader, trace::Reader::open(path));
    state->reader = std::move(reader);
    state->inode = inode_of(path);
    std::error_code ec;
    state->log_bytes = std::min<u64>(std::filesystem::file_size(path, ec) + kMiB, kLargestLog);
    if (ec) state->log_bytes = 64 * kMiB;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(bind.host.c_str(), bind.port.c_str(), &hints, &found); error != 0)
        return fail(Error::environment(fmt::format("--bind {}: {}", bind.host, ::gai_strerror(error))));
    const auto release = [found] { ::freeaddrinfo(found); };
    state->listener = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    if (state->listener >= 0) ::setsockopt(state->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (state->listener < 0 || ::bind(state->listener, found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(state->listener, 8) != 0) {
        const int error = errno;
        release();
        return fail(Error::environment(fmt::format("cannot listen on {}:{}: {}", bind.host, bind.port, std::strerror(error))));
    }
    release();
    sockaddr_storage at{};
    socklen_t size = sizeof(at);
    ::getsockname(state->listener, reinterpret_cast<sockaddr*>(&at), &size);
    state->port = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                                 : reinterpret_cast<sockaddr_in&>(at).sin_port);
    state->read();
    return std::unique_ptr<Server>(new Server(std::move(state)));
}

void Server::turn(int wait_ms) {
    State& s = *state_;
    s.read();
    std::vector<pollfd> fds = {{s.listener, POLLIN, 0}};
    for (Client& c : s.clients) {
        s.fill(c);
        fds.push_back({c.fd, static_cast<short>(c.sent < c.out.size() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    if (::poll(fds.data(), fds.size(), wait_ms) <= 0) return;
    for (std::size_t i = 1; i < fds.size(); ++i) {
        Client& c = s.clients[i - 1];
        if ((fds[i].revents & POLLIN) != 0) s.hear(c);
        if ((fds[i].revents & POLLOUT) != 0 && !c.gone) s.send(c);
        if ((fds[i].revents & (POLLERR | POLLHUP)) != 0) c.gone = true;
    }
    std::erase_if(s.clients, [](const Client& c) {
        if (c.gone) ::close(c.fd);
        return c.gone;
    });
    if ((fds[0].revents & POLLIN) != 0) s.accept_one();
}

u32 Server::port() const { return state_->port; }
std::size_t Server::viewers() const { return state_->clients.size(); }
bool Server::finished() const { return state_->reader->finished(); }
u64 Server::samples_dropped() const { return state_->dropped; }

std::string tunnel_lines(const std::string& this_host, u32 port) {
    return fmt::format("ssh -N -L {0}:127.0.0.1:{0} {1}\noomlab view 127.0.0.1:{0}\n", port, this_host);
}

}  // namespace oomlab::serve
