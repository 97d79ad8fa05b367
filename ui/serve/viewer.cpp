#include "ui/serve/viewer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "labs/trace/writer.hpp"

namespace oomlab::serve {
namespace {

constexpr int kConnectMs = 4000;
constexpr std::size_t kMostBytesAPoll = 16 * kMiB;   // so that a frame of the window is never held up
constexpr double kRetryEvery_s = 2, kSilence_s = 5;

// Waits for the socket; false when nothing came in time.
bool ready(int fd, short what, int wait_ms) {
    pollfd p{fd, what, 0};
    return ::poll(&p, 1, wait_ms) > 0 && (p.revents & what) != 0;
}

bool transfer(int fd, void* data, std::size_t size, bool out) {
    auto* at = static_cast<char*>(data);
    while (size > 0) {
        if (!ready(fd, out ? POLLOUT : POLLIN, kConnectMs)) return false;
        const ssize_t n = out ? ::send(fd, at, size, MSG_NOSIGNAL) : ::recv(fd, at, size, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

int dial(const Address& address, int wait_ms) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found) != 0) return -1;
    int fd = -1;
    for (addrinfo* a = found; a != nullptr && fd < 0; a = a->ai_next) {
        fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        int error = 0;
        socklen_t size = sizeof(error);
        const bool done = ::connect(fd, a->ai_addr, a->ai_addrlen) == 0 ||
                          (errno == EINPROGRESS && ready(fd, POLLOUT, wait_ms) &&
                           ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
        if (!done) {
            ::close(fd);
            fd = -1;
        }
    }
    ::freeaddrinfo(found);
    return fd;
}

}  // namespace

struct Viewer::State {
    Address address;
    int fd = -1;
    std::string folder, path;
    std::unique_ptr<trace::Writer> writer;
    u64 run = 0, records = 0, wall_records = 0, log_bytes = 0, dropped = 0;
    int copies = 0;
    bool finished = false;
    double heard_s = 0, tried_s = 0, now_s = 0;
    std::vector<std::byte> in;
    std::size_t used = 0;   // of `in`

    ~State() {
        if (fd >= 0) ::close(fd);
        writer.reset();
        std::error_code ignored;
        if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    }

    Result<void> new_copy() {
        writer.reset();
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove(path, ignored);
        path = fmt::format("{}/{}.omtrace", folder, ++copies);
        trace::FileSizes sizes;
        sizes.virtual_log_bytes = std::max(sizes.virtual_log_bytes, log_bytes);
        OOMLAB_TRY_VOID(trace::create_trace_file(path, sizes));
        OOMLAB_TRY(opened, trace::Writer::open(path));
        writer = std::move(opened);
        records = wall_records = 0;
        finished = false;
        return {};
    }

    Result<void> shake_hands() {
        const std::string where = address.host + ":" + address.port;
        fd = dial(address, kConnectMs);
        if (fd < 0)
            return fail(Error::environment(fmt::format("{}: nobody listens there; start it with: oomlab serve, and check the tunnel", where)));
        ServerHello hello;
        if (!transfer(fd, &hello, sizeof(hello), false) || hello.magic != kServerMagic)
            return fail(Error::parse(fmt::format("{}: what listens there is not oomlab serve", where)));
        if (hello.version != kProtocolVersion || hello.trace_version != trace::kFormatVersion)
            return fail(Error::parse(fmt::format(
                "{}: the server there speaks version {} (trace {}), this viewer {} (trace {}): install the same oomlab on both",
                where, hello.version, hello.trace_version, kProtocolVersion, trace::kFormatVersion)));
        log_bytes = std::min(hello.log_bytes, kLargestLog);
        if (writer == nullptr || (run != 0 && hello.run != run)) OOMLAB_TRY_VOID(new_copy());
        ViewerHello mine;
        mine.run = records > 0 ? run : 0;
        mine.records = records;
        mine.wall_records = wall_records;
        run = hello.run;
        in.clear();
        used = 0;
        if (!transfer(fd, &mine, sizeof(mine), true))
            return fail(Error::environment(fmt::format("{}: the connection broke during the greeting", where)));
        return {};
    }

    void hang_up() {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }

    // Takes one whole frame off the front; false when there is none.
    bool one_frame() {
        FrameHead head;
        if (in.size() - used < sizeof(head)) return false;
        std::memcpy(&head, in.data() + used, sizeof(head));
        if (head.payload_bytes > kLargestPayload) {
            hang_up();
            return false;
        }
        if (in.size() - used < sizeof(head) + head.payload_bytes) return false;
        const std::span<const std::byte> payload(in.data() + used + sizeof(head), head.payload_bytes);
        switch (head.kind) {
            case FrameKind::record:
                ++records;
                if (head.type != 0) writer->append(static_cast<trace::RecordType>(head.type), head.time_us, payload);
                break;
            case FrameKind::wall_record:
                ++wall_records;
                writer->append_wall(static_cast<trace::RecordType>(head.type), head.time_us, payload);
                break;
            case FrameKind::status: {
                Status status;
                if (payload.size() < sizeof(status)) break;
                std::memcpy(&status, payload.data(), sizeof(status));
                dropped = status.samples_dropped;
                finished = status.finished != 0;
                break;
            }
            case FrameKind::new_run:
                run = static_cast<u64>(head.time_us);
                if (!new_copy()) hang_up();
                break;
            default: hang_up(); return false;
        }
        used += sizeof(head) + head.payload_bytes;
        return true;
    }
};

Viewer::Viewer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Viewer::~Viewer() = default;

Result<std::unique_ptr<Viewer>> Viewer::connect(const Address& address) {
    auto state = std::make_unique<State>();
    state->address = address;
    std::error_code ec;
    std::string name = (std::filesystem::temp_directory_path(ec) / "oomlab-view-XXXXXX").string();
    if (ec || ::mkdtemp(name.data()) == nullptr)
        return fail(Error::environment("no temporary folder for the copy of the trace: set TMPDIR"));
    state->folder = name;
    OOMLAB_TRY_VOID(state->shake_hands());
    return std::unique_ptr<Viewer>(new Viewer(std::move(state)));
}

bool Viewer::poll(double now_s) {
    State& s = *state_;
    if (s.heard_s == 0) s.heard_s = now_s;
    s.now_s = now_s;
    if (s.fd < 0) {
        if (now_s - s.tried_s < kRetryEvery_s) return false;
        s.tried_s = now_s;
        if (!s.shake_hands()) {
            s.hang_up();
            return false;
        }
    }
    bool came = false;
    std::size_t taken = 0;
    while (s.fd >= 0 && taken < kMostBytesAPoll) {
        constexpr std::size_t kChunk = 256 * kKiB;
        const std::size_t had = s.in.size();
        s.in.resize(had + kChunk);
        const ssize_t n = ::recv(s.fd, s.in.data() + had, kChunk, 0);
        s.in.resize(had + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) s.hang_up();
        if (n <= 0) break;
        taken += static_cast<std::size_t>(n);
        came = true;
        s.heard_s = now_s;
        while (s.fd >= 0 && s.one_frame()) {}
        s.in.erase(s.in.begin(), s.in.begin() + static_cast<std::ptrdiff_t>(s.used));
        s.used = 0;
    }
    return came;
}

const std::string& Viewer::path() const { return state_->path; }

std::string Viewer::text() const {
    return fmt::format("{} {}:{}", state_->finished ? "finished, from" : "live from", state_->address.host, state_->address.port);
}

std::string Viewer::problem() const {
    const State& s = *state_;
    const double silent = s.now_s - s.heard_s;
    if (s.fd < 0) return fmt::format("the link is lost, last data {:.0f} s ago, reconnecting", silent);
    if (silent > kSilence_s) return fmt::format("nothing has come for {:.0f} s", silent);
    if (s.dropped > 0) return fmt::format("{} samples and maps left out, the link is slow; events are complete", s.dropped);
    return "";
}

}  // namespace oomlab::serve
