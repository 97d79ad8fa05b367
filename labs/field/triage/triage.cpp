#include "labs/field/triage/triage.hpp"

#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "labs/field/triage/judge.hpp"
#include "labs/field/triage/lines.hpp"

namespace oomlab::triage {
namespace {

// Rows grouped by literal: several rows may share one.
struct Patterns {
    std::vector<std::string_view> literals;
    std::vector<std::vector<std::uint16_t>> rows_of;
    LiteralSet set{{}};

    Patterns() {
        const auto rows = signal_rows();
        for (std::size_t r = 0; r < rows.size(); ++r) {
            std::size_t id = 0;
            while (id < literals.size() && literals[id] != rows[r].literal) ++id;
            if (id == literals.size()) {
                literals.push_back(rows[r].literal);
                rows_of.emplace_back();
            }
            rows_of[id].push_back(static_cast<std::uint16_t>(r));
        }
        set = LiteralSet(literals);
    }
};

const Patterns& patterns() {
    static const Patterns kPatterns;
    return kPatterns;
}

constexpr std::size_t kFilesMax = 256;
// Beyond this many facts of one signal only every kSparse-th is stored: counters of days of
// serving.
constexpr std::uint64_t kDense = 512;
constexpr std::uint64_t kSparse = 64;

// The number behind `key`, or -1.
double number_after(std::string_view text, std::string_view key) {
    const auto at = text.find(key);
    if (at == std::string_view::npos) return -1;
    const char* const begin = text.data() + at + key.size();
    double value = -1;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    return error == std::errc{} && end != begin ? value : -1;
}

}  // namespace

struct Session::State {
    Facts facts;
    std::vector<std::unique_ptr<RE2>> expressions =
        std::vector<std::unique_ptr<RE2>>(signal_rows().size());
    std::vector<std::uint16_t> ids;
    std::array<std::uint64_t, 16> frame_line{};
    std::array<std::uint64_t, 16> frame_tick{};
    std::uint64_t tick = 0;  // lines of this file that said something
    std::uint64_t tick_line = 0;
    Phase phase = Phase::unknown;
    bool series_read = false;
    bool prompt = false;
    std::uint32_t file = 0;
    std::uint64_t lines = 0, bytes = 0;
    LineScanner scanner{patterns().set, [this](const CandidateLine& line) { on_line(line); }};

    const RE2& expression(std::size_t row) {
        if (!expressions[row]) {
            RE2::Options options;
            options.set_case_sensitive(false);
            options.set_log_errors(false);
            options.set_max_mem(1 << 20);
            expressions[row] = std::make_unique<RE2>(signal_rows()[row].expression, options);
            OOMLAB_CHECK(expressions[row]->ok());
        }
        return *expressions[row];
    }

    Frames frames_near() const {
        Frames near;
        for (std::size_t i = 0; i < frame_line.size(); ++i) {
            if (frame_line[i] != 0 && tick - frame_tick[i] <= Frames::kNear)
                near.line[i] = frame_line[i];
        }
        return near;
    }

    void on_line(const CandidateLine& line) {
        series_read = false;
        prompt = quotes_a_prompt(line.body);
        patterns().set.find_all(line.text, ids);
        for (const std::uint16_t id : ids) {
            for (const std::uint16_t row : patterns().rows_of[id]) try_row(row, line);
        }
    }

    void try_row(std::uint16_t row, const CandidateLine& line) {
        const SignalRow& r = signal_rows()[row];
        Fact fact;
        if (r.expression[0] != '\0') {
            const RE2& re = expression(row);
            std::array<re2::StringPiece, 7> groups;
            const int wanted = std::min(re.NumberOfCapturingGroups(), 6) + 1;
            if (!re.Match(re2::StringPiece(line.body.data(), line.body.size()), 0, line.body.size(),
                          RE2::UNANCHORED, groups.data(), wanted))
                return;
            // Alternatives leave groups empty: fields are the groups that took part, in order.
            std::size_t field = 0;
            for (int g = 1; g < wanted; ++g) {
                const auto& piece = groups[static_cast<std::size_t>(g)];
                if (piece.data() != nullptr)
                    fact.fields[field++] = std::string(piece.substr(0, 160));
            }
        }
        fact.signal = r.signal;
        fact.place = {file, line.number};
        record(std::move(fact), line);
    }

    // A request that is logged with its prompt: its words are a user's, not the server's.
    static bool quotes_a_prompt(std::string_view body) {
        for (const std::string_view sign : {"Received request ", "prompt: '", "\"content\":",
                                            "\"prompt\":", "GenerateReqInput(", "inputs: \""})
            if (body.find(sign) != std::string_view::npos) return true;
        return false;
    }

    void record(Fact fact, const CandidateLine& line) {
        const Signal s = fact.signal;
        if (prompt && s != Signal::serving_activity && s != Signal::logprobs &&
            s != Signal::image_request && s != Signal::prompt_length && s != Signal::sampling_many)
            return;
        if (s == Signal::engine_start || s == Signal::loading_weights) {
            phase = Phase::start;
        } else if (s == Signal::serving_ready || s == Signal::train_step) {
            phase = Phase::serving;
        } else if (s == Signal::serving_activity) {
            phase = Phase::serving;
        }
        fact.phase = phase;
        if (tick_line != line.number) ++tick, tick_line = line.number;
        if (is_frame(s)) {
            frame_line[frame_slot(s)] = line.number;
            frame_tick[frame_slot(s)] = tick;
        }
        if (s == Signal::series) {
            if (series_read) return;  // several words opened the same door
            series_read = true;
            facts.series.read(line.body, line.lookahead, fact.place);
            return;
        }
        if (s == Signal::stat_line || s == Signal::sglang_decode || s == Signal::sglang_prefill)
            count(fact, line);
        Facts::Shelf& shelf = facts.shelf(s);
        if (shelf.count > kDense && shelf.count % kSparse != 0 && s != Signal::torch_oom) {
            ++shelf.count;
            return;
        }
        fact.text = std::string(line.text.substr(0, Fact::kTextMax));
        if (s == Signal::host_total && !fact.fields[1].empty() &&
            fact.text.find("Mem:") != std::string::npos) {
            if (const auto used = size_bytes(fact.fields[1]))
                facts.series.add(Series::Kind::host, "used by free", *used, fact.place);
        }
        if (s == Signal::torch_oom) {
            ++facts.torch_count;
            if (facts.torch.size() < Facts::kKeep) {
                TorchOom oom = parse_torch_oom(line.text, line.lookahead);
                oom.place = fact.place;
                oom.phase = phase;
                oom.frames = frames_near();
                oom.text = fact.text;
                facts.torch.push_back(std::move(oom));
            }
        }
        const bool device = s == Signal::device_oom || s == Signal::ggml_oom ||
                            s == Signal::cublas_alloc || s == Signal::nccl_oom ||
                            s == Signal::torch_oom_bare || s == Signal::jax_oom;
        if (device && facts.device_frames.size() < Facts::kKeep)
            facts.device_frames.emplace_back(fact.place, frames_near());
        facts.add(std::move(fact));
    }

    void count(const Fact& fact, const CandidateLine& line) {
        Counters& n = facts.counters;
        double running = -1, waiting = -1, usage = -1;
        if (fact.signal == Signal::stat_line &&
            (usage = number_after(line.text, "GPU KV cache usage: ")) >= 0) {
            running = number_after(line.text, "Running: ");
            waiting = std::max(number_after(line.text, "Waiting: "),
                               number_after(line.text, "Pending: "));
            usage /= 100;
            if (running > 0 || usage > 0.001) phase = Phase::serving;
        } else if (fact.signal == Signal::sglang_decode) {
            running = number_after(line.text, "#running-req: ");
            usage = number_after(line.text, "token usage: ");
            waiting = number_after(line.text, "#queue-req: ");
            phase = Phase::serving;
        } else if (fact.signal == Signal::sglang_prefill) {
            phase = Phase::serving;
            return;
        } else {
            return;
        }
        n.usage_max = std::max(n.usage_max, usage);
        if (usage < 0.945 && !(running == 0 && waiting > 0 && usage < 0.02)) {
            n.standing_run = 0;
            return;
        }
        Fact kept = fact;
        kept.text = std::string(line.text.substr(0, Fact::kTextMax));
        if (usage >= 0.945) {
            ++n.full;
            if (waiting > 0) ++n.full_waiting;
            if (!n.first_full) n.first_full = kept;
            n.last_full = kept;
            const bool still =
                line.text.find("generation throughput: 0.0 ") != std::string_view::npos ||
                line.text.find("(token/s): 0.00") != std::string_view::npos;
            if (still) {
                ++n.frozen;
                if (!n.first_frozen) n.first_frozen = kept;
            }
        }
        if (running == 0 && waiting > 0 && usage < 0.02) {
            ++n.standing;
            n.standing_run_best = std::max(n.standing_run_best, ++n.standing_run);
            if (!n.first_standing) n.first_standing = kept;
            n.last_standing = kept;
        } else {
            n.standing_run = 0;
        }
    }
};

Session::Session() : state_(std::make_unique<State>()) {}
Session::~Session() = default;
// The scanner's sink points at the state, which does not move.
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::begin_file(std::string name) {
    State& s = *state_;
    s.file = static_cast<std::uint32_t>(s.facts.file_names.size());
    s.facts.file_names.push_back(std::move(name));
    s.frame_line.fill(0);
    s.tick = s.tick_line = 0;
    s.phase = Phase::unknown;
    s.scanner.begin();
}

void Session::feed(std::string_view chunk) {
    state_->scanner.feed(chunk);
}

Result<void> Session::end_file() {
    State& s = *state_;
    s.scanner.end();
    s.lines += s.scanner.lines();
    s.bytes += s.scanner.bytes();
    if (s.scanner.looks_binary()) {
        return fail(
            Error::parse(printable(s.facts.file_names.back(), 400) +
                         ": not a text log (many zero bytes); give the log itself, unpacked"));
    }
    return {};
}

Report Session::report() const {
    Report r = judge(state_->facts);
    r.lines = state_->lines;
    r.bytes = state_->bytes;
    return r;
}

Report triage_text(std::string_view text, std::string name) {
    Session session;
    session.begin_file(std::move(name));
    session.feed(text);
    (void)session.end_file().has_value();  // a text that is not one gives an empty report
    return session.report();
}

namespace {

struct Descriptor {
    int fd = -1;
    explicit Descriptor(int f) : fd(f) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd > 2) ::close(fd);
    }
};

std::string_view packed_kind(std::string_view head) {
    if (head.substr(0, 2) == "\x1f\x8b") return "gzip: zcat FILE | oomlab triage -";
    if (head.substr(0, 4) == "\x28\xb5\x2f\xfd") return "zstd: zstdcat FILE | oomlab triage -";
    if (head.substr(0, 6) == std::string_view("\xfd"
                                              "7zXZ\0",
                                              6))
        return "xz: xzcat FILE | oomlab triage -";
    if (head.substr(0, 4) == "PK\x03\x04") return "a zip archive: unzip -p FILE | oomlab triage -";
    if (head.substr(0, 4) ==
        "\x7f"
        "ELF")
        return "a program, not a log";
    if (head.substr(0, 4) == "\x89PNG" || head.substr(0, 3) == "\xff\xd8\xff")
        return "a picture: paste the text instead";
    return {};
}

Result<void> read_one(Session& session, const std::string& path) {
    const bool standard = path == "-";
    const std::string shown = standard ? "(standard input)" : printable(path, 400);
    const Descriptor file(standard ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0) return fail(Error::io(shown + ": " + std::strerror(errno)));
    struct stat info {};
    if (::fstat(file.fd, &info) == 0 && S_ISDIR(info.st_mode))
        return fail(Error::io(shown + ": is a directory; give the log files in it"));
    session.begin_file(standard ? "-" : path);
    std::string block(LineScanner::kBlock, '\0');
    bool first = true;
    for (;;) {
        const ssize_t n = ::read(file.fd, block.data(), block.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(Error::io(shown + ": " + std::strerror(errno)));
        if (n == 0) break;
        const std::string_view chunk(block.data(), static_cast<std::size_t>(n));
        if (first) {
            first = false;
            const auto kind = packed_kind(chunk);
            if (!kind.empty()) return fail(Error::parse(shown + ": " + std::string(kind)));
        }
        session.feed(chunk);
    }
    return session.end_file();
}

}  // namespace

Result<Report> triage_files(const std::vector<std::string>& paths) {
    if (paths.empty())
        return fail(Error::usage("triage: give a log file, or - for standard input"));
    if (paths.size() > kFilesMax)
        return fail(
            Error::usage("triage: more than " + std::to_string(kFilesMax) + " files at once"));
    Session session;
    for (const std::string& path : paths) OOMLAB_TRY_VOID(read_one(session, path));
    return session.report();
}

}  // namespace oomlab::triage
