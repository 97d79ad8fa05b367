#include "labs/trace/control.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "labs/trace/mapped_file.hpp"

namespace oomlab::trace {

namespace {
constexpr u64 kControlMagic = 0x6c74635f6d6f6f00ull;
constexpr int kPauseLookMs = 2;
}  // namespace

struct ControlSender::Words {
    u64 magic;
    std::atomic<u64> stop, paused, steps_allowed, speed_bits;
};

Result<std::unique_ptr<ControlSender>> ControlSender::create() {
    const int fd = ::memfd_create("oomlab-control", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, kHeaderBytes) != 0) {
        const int error = errno;
        if (fd >= 0) ::close(fd);
        return fail(Error::environment("cannot make the control channel: " + errno_text(error)));
    }
    void* at = ::mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        const int error = errno;
        ::close(fd);
        return fail(Error::environment("cannot map the control channel: " + errno_text(error)));
    }
    auto* words = new (at) ControlSender::Words{};
    words->magic = kControlMagic;
    return std::unique_ptr<ControlSender>(new ControlSender(fd, words));
}

ControlSender::~ControlSender() {
    ::munmap(words_, kHeaderBytes);
    ::close(fd_);
}

void ControlSender::stop() { words_->stop.store(1, std::memory_order_release); }
void ControlSender::pause(bool on) {
    words_->paused.store(on ? 1 : 0, std::memory_order_release);
}
void ControlSender::step(u64 steps) {
    words_->steps_allowed.fetch_add(steps, std::memory_order_release);
}
void ControlSender::speed(double times) {
    words_->speed_bits.store(std::bit_cast<u64>(times), std::memory_order_release);
}

std::unique_ptr<ControlReceiver> ControlReceiver::from_environment() {
    const char* text = std::getenv(kControlVariable);
    if (text == nullptr) return nullptr;
    int fd = -1;
    const std::string_view view(text);
    std::from_chars(view.data(), view.data() + view.size(), fd);
    return fd < 0 ? nullptr : from_fd(fd);
}

std::unique_ptr<ControlReceiver> ControlReceiver::from_fd(int fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0 || st.st_size < static_cast<off_t>(kHeaderBytes)) return nullptr;
    void* at = ::mmap(nullptr, kHeaderBytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    auto* words = static_cast<ControlSender::Words*>(at);
    if (words->magic != kControlMagic) {
        ::munmap(at, kHeaderBytes);
        return nullptr;
    }
    return std::unique_ptr<ControlReceiver>(new ControlReceiver(words));
}

ControlReceiver::~ControlReceiver() { ::munmap(words_, kHeaderBytes); }

bool ControlReceiver::stop_requested() const {
    return words_->stop.load(std::memory_order_acquire) != 0;
}
bool ControlReceiver::paused() const {
    return words_->paused.load(std::memory_order_acquire) != 0;
}
double ControlReceiver::speed() const {
    return std::bit_cast<double>(words_->speed_bits.load(std::memory_order_acquire));
}

bool ControlReceiver::wait_for_turn() {
    const auto allowed = [&] { return words_->steps_allowed.load(std::memory_order_acquire); };
    while (!stop_requested()) {
        if (!paused()) {
            // Steps that were asked for before this moment are not owed any more.
            steps_taken_ = std::max(steps_taken_, allowed());
            return true;
        }
        if (steps_taken_ < allowed()) {
            ++steps_taken_;
            return true;
        }
        ::poll(nullptr, 0, kPauseLookMs);
    }
    return false;
}

}  // namespace oomlab::trace
