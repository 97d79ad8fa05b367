// R1 and R2: a measured, saturated serving run, replayed.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>

#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/gpu_profile.hpp"
#include "labs/catalog/text_file.hpp"
#include "labs/server/record/latency.hpp"
#include "labs/validate/detail.hpp"

namespace oomlab::validate {
namespace {

struct Measured {
    std::string json_path, model, model_name, gpu, version, dtype;
    u64 total_bytes = 0, tp = 1, max_model_len = 0, max_num_seqs = 0, max_num_batched_tokens = 0, block_size = 16, blocks = 0;
    double utilization = 0.9, makespan_s = 0, mean_running = 0, mean_kv = 0;
    bool prefix_caching = true;
    std::vector<PlannedRequest> requests;
    double ttft_mean, ttft_p50, ttft_p99, tpot_mean, tpot_p50, tpot_p99, e2e_mean, e2e_p99;
};

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

double mean(const std::vector<double>& v) {
    return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

// The measured times of every request, from the TSV: the published statistics follow from them.
Result<void> read_times(const std::string& path, Measured& m) {
    OOMLAB_TRY(requests, load_requests_tsv(path));
    m.requests = requests;
    OOMLAB_TRY(text, read_text_file(path, 64 * kMiB));
    std::vector<double> ttft, tpot, e2e;
    std::size_t line = 0, at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string row = text.substr(at, end - at);
        at = end + 1;
        double arrival = 0, first = 0, last = 0;
        unsigned long long prompt = 0, output = 0;
        if (line++ == 0 || row.empty()) continue;
        if (std::sscanf(row.c_str(), "%lf\t%llu\t%llu\t%lf\t%lf", &arrival, &prompt, &output, &first, &last) != 5) continue;
        ttft.push_back(first - arrival);
        e2e.push_back(last - arrival);
        if (output > 1) tpot.push_back((last - first) / static_cast<double>(output - 1));
        m.makespan_s = std::max(m.makespan_s, last);
    }
    m.ttft_mean = mean(ttft);
    m.ttft_p50 = server::percentile(ttft, 50);
    m.ttft_p99 = server::percentile(ttft, 99);
    m.tpot_mean = 1e3 * mean(tpot);
    m.tpot_p50 = 1e3 * server::percentile(tpot, 50);
    m.tpot_p99 = 1e3 * server::percentile(tpot, 99);
    m.e2e_mean = mean(e2e);
    m.e2e_p99 = server::percentile(e2e, 99);
    return {};
}

// The profile whose name says the same card: "NVIDIA GeForce RTX 4090" is rtx4090.
std::string profile_for(const std::string& gpu, u64 total_bytes) {
    std::string best;
    const std::string wanted = lower(gpu);
    u64 best_gap = ~u64{0};
    for (const std::string& id : gpu_profile_names()) {
        const auto p = load_gpu_profile(id);
        if (!p) continue;
        const std::string name = lower(p->name);
        std::string bare = id.substr(0, id.find('-'));
        std::string squeezed;
        for (const char c : wanted) {
            if (c != ' ' && c != '-') squeezed += c;
        }
        if (squeezed.find(bare) == std::string::npos && wanted.find(name) == std::string::npos) continue;
        const u64 gap = total_bytes == 0 ? 0 : total_bytes > p->total_bytes ? total_bytes - p->total_bytes : p->total_bytes - total_bytes;
        if (gap < best_gap) {
            best_gap = gap;
            best = id;
        }
    }
    return best;
}

// "meta-llama/Llama-3.1-8B" is llama-3.1-8b; endings that do not change the shape are left off.
std::string model_for(const std::string& model) {
    std::string name = lower(model.substr(model.rfind('/') == std::string::npos ? 0 : model.rfind('/') + 1));
    if (name.rfind("meta-", 0) == 0) name = name.substr(5);
    const auto names = model_names();
    for (const char* ending : {"", "-instruct", "-base", "-hf", "-it", "-chat", "-fp8", "-awq"}) {
        std::string base = name;
        const std::string e = ending;
        if (!e.empty() && base.size() > e.size() && base.compare(base.size() - e.size(), e.size(), e) == 0) base.resize(base.size() - e.size());
        for (const std::string& n : names) {
            if (n == base) return n;
        }
    }
    return "";
}

Result<std::vector<Measured>> find_runs(const Options& options, std::string& why_not) {
    std::vector<Measured> runs;
    std::vector<std::string> files;
    std::string place = options.serving;
    if (place.empty()) {
        OOMLAB_TRY(content, content_dir());
        place = content + "/../../shared/field/serving";
    }
    struct stat info {};
    if (stat(place.c_str(), &info) != 0) {
        if (!options.serving.empty()) return fail(Error::io(place + ": no such file or folder"));
        why_not = "the measured run is not here; give its place with --serving FOLDER";
        return runs;
    }
    if (S_ISDIR(info.st_mode)) {
        for (const std::string& n : names_in(place, ".json")) files.push_back(place + "/" + n + ".json");
    } else {
        files.push_back(place);
    }
    for (const std::string& path : files) {
        OOMLAB_TRY(text, read_text_file(path));
        Measured m;
        m.json_path = path;
        try {
            const auto j = nlohmann::json::parse(text);
            m.model_name = j.at("model").get<std::string>();
            m.gpu = j.at("gpu").get<std::string>();
            m.version = j.value("vllm_version", "0.19.0");
            m.dtype = j.value("dtype", "auto");
            m.total_bytes = j.value("device_total_bytes", u64{0});
            m.tp = j.value("tensor_parallel_size", u64{1});
            m.max_model_len = j.value("max_model_len", u64{0});
            m.max_num_seqs = j.value("max_num_seqs", u64{256});
            m.max_num_batched_tokens = j.value("max_num_batched_tokens", u64{2048});
            m.block_size = j.value("block_size", u64{16});
            m.blocks = j.value("num_gpu_blocks", u64{0});
            m.utilization = j.value("gpu_memory_utilization", 0.9);
            m.prefix_caching = j.value("enable_prefix_caching", true);
            m.mean_running = j.value("mean_running", 0.0);
            m.mean_kv = j.value("mean_kv_use_percent", 0.0);
        } catch (const nlohmann::json::exception& e) {
            return fail(Error::parse(fmt::format("{}: {}", path, e.what())));
        }
        m.model = model_for(m.model_name);
        OOMLAB_TRY_VOID(read_times(path.substr(0, path.size() - 5) + ".tsv", m));
        runs.push_back(std::move(m));
    }
    if (runs.empty()) why_not = place + " holds no measured run (.json with its .tsv)";
    return runs;
}

std::string scenario_for(const Measured& m, const std::string& profile, u64 blocks) {
    return fmt::format(
        "[device]\nname = \"sim:{}\"\n[model]\nconfig = \"{}\"\ndtype = \"{}\"\ntensor_parallel_size = {}\n[server]\n{}"
        "max_num_seqs = {}\nmax_num_batched_tokens = {}\ngpu_memory_utilization = {}\nblock_size = {}\n"
        "enable_prefix_caching = {}\nengine_version = \"{}\"\n{}",
        profile, m.model, m.dtype, m.tp, m.max_model_len != 0 ? fmt::format("max_model_len = {}\n", m.max_model_len) : "",
        m.max_num_seqs, m.max_num_batched_tokens, m.utilization, m.block_size, m.prefix_caching, m.version,
        blocks != 0 ? fmt::format("num_gpu_blocks_override = {}\n", blocks) : "");
}

void compare(Report& report, const Measured& m, const trace::FinishRecord& f, const std::string& prefix, double means,
             double p99s, double makespan) {
    const auto row = [&](const char* what, const char* unit, double published, double simulated, double tolerance) {
        if (published <= 0 || tolerance <= 0) return;
        Row r;
        r.what = prefix + what;
        r.unit = unit;
        r.published = published;
        r.simulated = simulated;
        r.tolerance = tolerance;
        report.rows.push_back(r);
    };
    row("TTFT mean", "s", m.ttft_mean, f.ttft_mean_s, means);
    row("TTFT P99", "s", m.ttft_p99, f.ttft_p99_s, p99s);
    row("TPOT mean", "ms", m.tpot_mean, 1e3 * f.tpot_mean_s, means);
    row("TPOT P99", "ms", m.tpot_p99, 1e3 * f.tpot_p99_s, p99s);
    row("latency mean", "s", m.e2e_mean, f.e2e_mean_s, means);
    row("latency P99", "s", m.e2e_p99, f.e2e_p99_s, p99s);
    row("makespan", "s", m.makespan_s, f.makespan_s, makespan);
}

}  // namespace

Result<Report> measured_run(const Options& options) {
    OOMLAB_TRY(figures, Figures::load("r1"));
    Report report;
    report.title = figures.title;
    OOMLAB_TRY(runs, find_runs(options, report.skipped));
    const double means = figures.at("means").tolerance, p99s = figures.at("p99").tolerance,
                 makespan = figures.at("makespan").tolerance, blocks = figures.at("blocks").tolerance,
                 predicted_means = figures.at("predicted means").tolerance;
    for (const Measured& m : runs) {
        const std::string profile = profile_for(m.gpu, m.total_bytes);
        if (profile.empty() || m.model.empty()) {
            report.notes.push_back(fmt::format("{}: left out, {} is not among our {}", m.json_path,
                                               profile.empty() ? m.gpu : m.model_name, profile.empty() ? "cards" : "models"));
            continue;
        }
        const std::string label = fmt::format("{} on {}: ", m.model, profile);
        OOMLAB_TRY(given, serve(scenario_for(m, profile, m.blocks), m.requests));
        compare(report, m, given->engine->finish_record(), label, means, p99s, makespan);
        if (m.mean_running > 0) {
            report.rows.push_back(Row{label + "mean running", "", m.mean_running, given->engine->mean_running(), means, Row::Kind::percent});
        }
        report.wall_s += given->wall_s;
        report.simulated_s += given->engine->finish_record().makespan_s;
        OOMLAB_TRY(predicted, serve(scenario_for(m, profile, 0), m.requests));
        if (m.blocks != 0) {
            report.rows.push_back(Row{label + "KV blocks, predicted", "", static_cast<double>(m.blocks),
                                      static_cast<double>(predicted->engine->budget().num_gpu_blocks), blocks, Row::Kind::percent});
        }
        compare(report, m, predicted->engine->finish_record(), label + "blocks predicted: ", predicted_means, 0, 0);
        report.notes.push_back(fmt::format("{}{} preemptions, {} tokens recomputed or found again, mean KV use {:.1f} % (measured {:.1f} %)",
                                           label, given->engine->finish_record().num_preemptions,
                                           given->engine->recorder().counters.recomputed_tokens,
                                           100 * given->engine->mean_kv_usage(), m.mean_kv));
    }
    return report;
}

Result<Report> forgotten_gigabyte(const Options& options) {
    OOMLAB_TRY(figures, Figures::load("r2"));
    Report report;
    report.title = figures.title;
    OOMLAB_TRY(runs, find_runs(options, report.skipped));
    for (const Measured& m : runs) {
        const std::string profile = profile_for(m.gpu, m.total_bytes);
        if (profile != "rtx4090" || m.model != "llama-3.1-8b" || m.blocks != 2588) continue;
        OOMLAB_TRY(right, serve(scenario_for(m, profile, 2588), m.requests));
        OOMLAB_TRY(wrong, serve(scenario_for(m, profile, 3400), m.requests));
        const trace::FinishRecord &a = right->engine->finish_record(), &b = wrong->engine->finish_record();
        figures.row(report, "TTFT", 100 * (b.ttft_mean_s / a.ttft_mean_s - 1));
        figures.row(report, "TPOT", 100 * (b.tpot_mean_s / a.tpot_mean_s - 1));
        figures.row(report, "latency", 100 * (b.e2e_mean_s / a.e2e_mean_s - 1));
        figures.row(report, "end", 100 * (b.makespan_s / a.makespan_s - 1));
        report.wall_s += right->wall_s + wrong->wall_s;
        report.simulated_s += a.makespan_s + b.makespan_s;
    }
    if (report.rows.empty() && report.skipped.empty()) report.skipped = "the RTX 4090 run with 2,588 blocks is not here";
    return report;
}

}  // namespace oomlab::validate
