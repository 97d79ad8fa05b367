#include "grader/checks/evidence.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "kernels/base/prng.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/diagnosis/run_summary.hpp"
#include "labs/trace/reader.hpp"

namespace oomlab::course {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kEvidenceVersion = 3;

json to_json(const RunEvidence& r) {
    json series = json::array();
    for (const auto& s : r.series) series.push_back({s.at_s, s.allocated, s.reserved, s.device_used});
    return {{"v", kEvidenceVersion}, {"outcome", r.outcome}, {"phase", r.phase}, {"message", r.message}, {"cause", r.cause},
            {"summary", r.summary}, {"type", r.type}, {"exit", r.exit_status}, {"simulated", r.simulated},
            {"short_by", r.short_by_bytes}, {"peak_allocated", r.peak_allocated}, {"total", r.device_total},
            {"activation", r.activation_peak}, {"weights", r.weights}, {"kv", r.kv_pool}, {"context", r.context},
            {"graphs", r.graphs}, {"communication", r.communication}, {"workspace", r.workspace}, {"failed_at", r.failed_at_us},
            {"served", {r.served.arrivals, r.served.within_limits, r.served.completed_within, r.served.rejected_within, r.served.failed_within}},
            {"evidence", r.evidence}, {"series", series}};
}

std::optional<RunEvidence> from_json(const std::string& text) {
    try {
        const json j = json::parse(text);
        if (j.at("v").get<int>() != kEvidenceVersion) return std::nullopt;
        RunEvidence r;
        r.outcome = j.at("outcome");
        r.phase = j.at("phase");
        r.message = j.at("message");
        r.cause = j.at("cause");
        r.summary = j.at("summary");
        r.type = j.at("type");
        r.exit_status = j.at("exit");
        r.simulated = j.at("simulated");
        r.short_by_bytes = j.at("short_by");
        r.peak_allocated = j.at("peak_allocated");
        r.device_total = j.at("total");
        r.activation_peak = j.at("activation");
        r.weights = j.at("weights");
        r.kv_pool = j.at("kv");
        r.context = j.at("context");
        r.graphs = j.at("graphs");
        r.communication = j.at("communication");
        r.workspace = j.at("workspace");
        r.failed_at_us = j.at("failed_at");
        const auto& s = j.at("served");
        r.served = {s.at(0), s.at(1), s.at(2), s.at(3), s.at(4)};
        r.evidence = j.at("evidence").get<std::vector<std::string>>();
        for (const auto& row : j.at("series")) r.series.push_back({row.at(0), row.at(1), row.at(2), row.at(3)});
        return r;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

double limit(const Exercise& e, const char* key, double otherwise) {
    const auto found = e.limits.find(key);
    return found == e.limits.end() ? otherwise : found->second;
}

// Requests by number: what arrived within the task's limits, and how each ended.
Result<void> count_requests(const std::string& trace_path, const Exercise& e, double sample_every, RunEvidence& out) {
    OOMLAB_TRY(reader, trace::Reader::open(trace_path));
    struct Seen {
        bool within = false;
    };
    std::unordered_map<u32, Seen> seen;
    const double prompt_max = limit(e, "prompt_tokens", 1e18), output_max = limit(e, "output_tokens", 1e18);
    diagnosis::MemorySeries series(sample_every);
    reader->poll([&](const trace::RecordView& view) {
        series.fold(view);
        if (view.type == trace::RecordType::failure && out.failed_at_us == 0) out.failed_at_us = static_cast<u64>(view.time_us);
        if (view.type != trace::RecordType::request) return;
        const auto r = view.as<trace::RequestRecord>();
        if (!r) return;
        Served& s = out.served;
        if (r->event == trace::RequestEvent::arrival) {
            ++s.arrivals;
            const bool within = r->prompt_tokens <= prompt_max && r->output_tokens <= output_max;
            seen[r->request].within = within;
            s.within_limits += within ? 1 : 0;
            return;
        }
        if (!seen[r->request].within) return;
        if (r->event == trace::RequestEvent::completion || r->event == trace::RequestEvent::cancelled) ++s.completed_within;
        if (r->event == trace::RequestEvent::rejection) ++s.rejected_within;
        if (r->event == trace::RequestEvent::failed) ++s.failed_within;
    });
    for (const auto& row : series.rows()) {
        out.series.push_back({row.at_s, row.memory_allocated_bytes, row.memory_reserved_bytes, row.device_used_bytes});
    }
    return {};
}

RunEvidence summarize(const runner::RunResult& run) {
    RunEvidence r;
    const diagnosis::RunFacts& f = run.facts;
    r.outcome = diagnosis::outcome_of(f);
    r.exit_status = diagnosis::exit_status_of(f);
    r.simulated = run.chip.simulated;
    r.type = run.diagnosis.type;
    r.cause = run.diagnosis.cause;
    r.summary = run.diagnosis.summary;
    r.evidence = run.diagnosis.evidence;
    r.short_by_bytes = run.diagnosis.short_by_bytes;
    r.phase = trace::phase_name(f.failures.empty() ? f.phase : f.failures.front().record.phase);
    r.message = f.failures.empty() ? "" : diagnosis::printable(f.failures.front().message);
    r.peak_allocated = f.allocated_peak;
    r.device_total = f.info.total_bytes;
    const auto peak = [&](Owner o) { return f.owner_peaks[static_cast<std::size_t>(o)]; };
    r.context = peak(Owner::context);
    r.graphs = peak(Owner::graphs);
    r.communication = peak(Owner::communication);
    r.workspace = peak(Owner::workspace);
    if (!f.lives.empty() && f.lives.front().budget) {
        const trace::BudgetRecord& b = *f.lives.front().budget;
        r.activation_peak = b.activation_peak_bytes;
        r.weights = b.weights_bytes;
        r.kv_pool = b.num_gpu_blocks * b.kv_block_bytes;
    }
    return r;
}

}  // namespace

Result<std::string> learner_text(const Folder& folder, const Exercise& e, const std::string& file) {
    const std::string path = folder.path(e, file);
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return fail(Error::io(fmt::format("{}/{}: is not there; `oomlab reset {}` brings it back", e.id, file, e.id)));
    if (S_ISLNK(info.st_mode)) return fail(Error::io(fmt::format("{}/{}: is a symbolic link; hand in the file itself", e.id, file)));
    if (!S_ISREG(info.st_mode)) return fail(Error::io(fmt::format("{}/{}: is not a regular file", e.id, file)));
    std::error_code ec;
    const fs::path real = fs::canonical(path, ec);
    const fs::path root = fs::canonical(folder.root(), ec);
    if (real.string().rfind(root.string() + "/", 0) != 0) return fail(Error::io(fmt::format("{}/{}: stands outside the course folder", e.id, file)));
    auto text = read_text_file(path);
    if (!text) text.error().message = fmt::format("{}/{}: larger than the 4 MiB that an answer may have", e.id, file);
    return text;
}

Result<RunEvidence> evidence_of(const Folder& folder, const Exercise& e, const std::string& file, const CheckOptions& options) {
    OOMLAB_TRY(text, learner_text(folder, e, file));
    OOMLAB_TRY(scenario, parse_scenario(text, e.id + "/" + file));
    const std::string& requests = scenario.workload.requests_file;
    if (!requests.empty() && (requests.front() == '/' || requests.find("..") != std::string::npos)) {
        return fail(Error::parse(fmt::format("{}/{}: requests_file stays inside the exercise's folder", e.id, file)));
    }
    std::string requests_text;
    if (!requests.empty()) {
        OOMLAB_TRY(t, learner_text(folder, e, requests));
        requests_text = t;
    }
    const u64 key = stable_hash(requests_text, stable_hash(text, stable_hash(e.id) ^ e.version * 0x9e3779b9));
    const std::string cache = fmt::format("{}/.oomlab/cache/{:016x}.json", folder.root(), key);
    if (!options.fresh) {
        if (const auto known = read_text_file(cache, 8 * kMiB)) {
            if (auto r = from_json(*known)) return *r;
        }
    }
    if (options.say) options.say(fmt::format("running {}/{} ({} of device time)", e.id, file, scenario.workload.duration_s >= 3600 ? "an hour or more" : "seconds to minutes"));
    OOMLAB_TRY(scratch, runner::ScratchDir::make());
    // What is judged is what was read: a copy, so that a file that changes meanwhile changes nothing.
    const std::string copy = scratch.path() + "/scenario.toml";
    OOMLAB_TRY_VOID(runner::write_file(copy, text));
    if (!requests.empty()) {
        std::error_code ec;
        fs::create_directories(fs::path(scratch.path() + "/" + requests).parent_path(), ec);
        OOMLAB_TRY_VOID(runner::write_file(scratch.path() + "/" + requests, requests_text));
    }
    runner::RunRequest request;
    request.scenario_path = copy;
    request.trace_path = scratch.path() + "/run.omtrace";
    OOMLAB_TRY(run, runner::run_scenario(request));
    RunEvidence out = summarize(run);
    OOMLAB_TRY_VOID(count_requests(request.trace_path, e, scenario.run.sample_every_s, out));
    std::error_code ec;
    fs::create_directories(folder.root() + "/.oomlab/cache", ec);
    OOMLAB_TRY_VOID(runner::write_file(cache, to_json(out).dump(-1, ' ', false, json::error_handler_t::replace)));
    return out;
}

}  // namespace oomlab::course
