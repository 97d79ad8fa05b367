#include "ui/term/live_run.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "labs/trace/views.hpp"

namespace oomlab::term {

namespace {

constexpr i64 kDrawEveryMs = 100, kPlainEveryMs = 2000;

std::string printable(std::string_view text) {
    std::string out(text.substr(0, text.find('\n')));
    for (char& c : out) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return out;
}

}  // namespace

bool is_terminal() {
    const char* term = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

Style terminal_style() {
    Style style;
    const char* no_colour = std::getenv("NO_COLOR");
    style.colour = is_terminal() && (no_colour == nullptr || *no_colour == '\0');
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col - 1;
    return style;
}

LiveRun::LiveRun(LiveOptions options) : options_(std::move(options)), redraws_(!options_.plain && !options_.silent && is_terminal()) {
    frame_.name = options_.name;
}

LiveRun::~LiveRun() { finish(); }

void LiveRun::say_chip(const std::string& chip) {
    if (!said_chip_) std::fprintf(stderr, "%s\n", chip.c_str());
    said_chip_ = true;
}

void LiveRun::update(const std::string& trace_path, const std::string& chip, const supervisor::Live& live) {
    if (options_.silent) return;
    if (reader_ == nullptr) {
        auto reader = trace::Reader::open(trace_path);
        if (!reader) return;   // it comes with a later call
        reader_ = std::move(*reader);
    }
    frame_.host_bytes = live.host_bytes;
    frame_.host_limit_bytes = live.limit_bytes.value_or(0);
    reader_->poll([&](const trace::RecordView& r) {
        say_chip(chip);
        fold(r);
    });
    if (speed_from_ms_ < 0 && frame_.phase == trace::Phase::serving) {
        speed_from_ms_ = live.wall_ms;
        speed_from_s_ = frame_.at_s;
    } else if (speed_from_ms_ >= 0 && live.wall_ms > speed_from_ms_ + 200) {
        frame_.times = (frame_.at_s - speed_from_s_) * 1000.0 / static_cast<double>(live.wall_ms - speed_from_ms_);
    }
    if (redraws_) {
        if (live.wall_ms - last_draw_ms_ < kDrawEveryMs) return;
        last_draw_ms_ = live.wall_ms;
        redraw();
    } else if (live.wall_ms - last_line_ms_ >= kPlainEveryMs) {
        last_line_ms_ = live.wall_ms;
        std::fprintf(stderr, "%s\n", plain_line(frame_).c_str());
    }
}

void LiveRun::fold(const trace::RecordView& r) {
    frame_.at_s = static_cast<double>(r.time_us - (served_from_us_ < 0 ? 0 : served_from_us_)) * 1e-6;
    if (r.type == trace::RecordType::run_info) {
        const auto j = nlohmann::json::parse(r.text(), nullptr, false);
        if (!j.is_object()) return;
        if (j.contains("device") && j["device"].is_string()) frame_.device = printable(j["device"].get<std::string>());
        if (j.contains("simulated") && j["simulated"].is_boolean()) frame_.simulated = j["simulated"].get<bool>();
        if (j.contains("total_bytes") && j["total_bytes"].is_number_unsigned()) frame_.total_bytes = j["total_bytes"].get<u64>();
    } else if (const auto p = trace::record_of<trace::PhaseRecord>(r, trace::RecordType::phase)) {
        frame_.phase = p->phase;
        if (p->phase == trace::Phase::serving && served_from_us_ < 0) served_from_us_ = r.time_us;
        if (!redraws_) std::fprintf(stderr, "phase %s\n", trace::phase_name(p->phase));
    } else if (const auto s = trace::record_of<trace::SampleRecord>(r, trace::RecordType::sample)) {
        for (std::size_t o = 0; o < kOwners; ++o) frame_.owner_bytes[o] = s->owner[o].now;
        // Between steps activations are gone; what a step took is what a watcher wants to see.
        const auto act = static_cast<std::size_t>(Owner::activations);
        const auto cached = static_cast<std::size_t>(Owner::cached);
        const u64 step = s->owner[act].high - std::min(s->owner[act].high, s->owner[act].now);
        frame_.owner_bytes[act] += std::min(step, frame_.owner_bytes[cached]);
        frame_.owner_bytes[cached] -= std::min(step, frame_.owner_bytes[cached]);
        frame_.total_bytes = s->total_bytes;
        frame_.used_bytes = s->device_used.now;
        frame_.kv_used = s->kv_blocks_used;
        frame_.kv_total = s->kv_blocks_total;
        frame_.running = s->running;
        frame_.waiting = s->waiting;
        frame_.received = s->received;
        frame_.completed = s->completed;
        frame_.rejected = s->rejected;
        frame_.preempted = s->preempted;
        frame_.failed = s->failed;
    } else if (r.type == trace::RecordType::log) {
        const std::string_view text = r.text();
        if (text.rfind("INFO", 0) == 0) return;
        frame_.note = printable(text);
        if (!redraws_) std::fprintf(stderr, "%s\n", frame_.note.c_str());
    }
}

void LiveRun::erase() {
    if (lines_on_screen_ == 0) return;
    std::fprintf(stderr, "\r\033[%zuA\033[J", lines_on_screen_);
    lines_on_screen_ = 0;
}

void LiveRun::redraw() {
    const std::vector<std::string> lines = draw(frame_, terminal_style());
    erase();
    for (const std::string& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
    std::fflush(stderr);
    lines_on_screen_ = lines.size();
}

void LiveRun::finish() {
    if (redraws_) erase();
}

}  // namespace oomlab::term
