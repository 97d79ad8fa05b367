#include "labs/catalog/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "kernels/base/prng.hpp"
#include "labs/catalog/toml_reader.hpp"

namespace oomlab {

const std::vector<FaultKind>& fault_kinds() {
    static const std::vector<FaultKind> kKinds = {
        {"request_retained", "release_finished_requests"},
        {"cache_without_eviction", "bound_the_cache"},
        {"cleanup_skipped", "clean_up_on_every_path"},
        {"graph_per_request", "capture_graphs_once"},
        {"inference_mode_missing", "inference_mode"},
        {"fragmenting_sizes", "one_page_size"},
        {"outside_growth", "bound_library_buffers"},
        {"host_growth", "bound_host_buffers"},
        {"kv_accounting", "return_kv_blocks"},
        {"quantization_ignored", "load_quantized"},
        {"sharding_ignored", "shard_the_weights"},
        {"illegal_access", "check_the_index"},
        {"bad_launch", "bound_the_grid"},
        {"device_assert", "check_the_vocabulary"},
        {"library_alloc_failed", "create_handles_early"},
        {"wrapper_says_oom", "report_the_cause"},
        {"device_call", ""},
        {"drawn", ""},
    };
    return kKinds;
}

namespace {

using Reader = TomlReader;
constexpr u64 kTokensMax = 100'000'000;
constexpr double kTokensMaxD = 1e8;

std::string did_you_mean(const std::string& close) {
    return close.empty() ? "" : fmt::format(" (did you mean {}?)", close);
}

TokenDist read_dist(Reader& section, const toml::node* node, const std::string& name, int depth) {
    TokenDist dist;
    if (node == nullptr) return dist;
    if (node->is_number()) {
        dist.value = node->value<double>().value_or(-1);
        if (!(dist.value >= 1 && dist.value <= kTokensMaxD)) {
            section.error(node, fmt::format("{} takes a number of tokens from 1 to {}", name, kTokensMax));
        }
        return dist;
    }
    const toml::table* table = node->as_table();
    if (table == nullptr || depth > 1) {
        section.error(node, fmt::format("{} takes a number, {{dist=\"lognormal\", mean, cv, max}}, "
                                        "{{dist=\"uniform\", min, max}} or {{mix=[{{share, tokens}}]}}",
                                        name));
        return dist;
    }
    Reader r(*table, section.file(), name + ".", section.first_error());
    if (r.has("mix")) {
        dist.kind = TokenDist::Kind::mix;
        double sum = 0;
        for (const toml::table* part : r.tables("mix")) {
            Reader p(*part, section.file(), name + ".mix.", section.first_error());
            TokenDist::Part out;
            out.share = p.number("share", 0, 0, 1e6);
            const toml::node* tokens = p.node("tokens");
            if (tokens == nullptr) p.error(part, name + ".mix wants tokens in each part");
            out.tokens = read_dist(p, tokens, name + ".mix.tokens", depth + 1);
            sum += out.share;
            p.finish();
            dist.parts.push_back(std::move(out));
        }
        if (!(sum > 0)) r.error(table, name + ".mix wants shares above 0");
    } else if (r.one_of("dist", "uniform", {"lognormal", "uniform"}) == "lognormal") {
        dist.kind = TokenDist::Kind::lognormal;
        dist.mean = r.number("mean", 512, 1, kTokensMaxD);
        dist.cv = r.number("cv", 1, 0, 100);
        dist.high = r.number("max", 0, 0, kTokensMaxD);
        dist.low = r.number("min", 1, 1, kTokensMaxD);
    } else {
        dist.kind = TokenDist::Kind::uniform;
        dist.low = r.number("min", 1, 1, kTokensMaxD);
        dist.high = r.number("max", 1024, 1, kTokensMaxD);
        if (dist.low > dist.high) r.error(table, name + ": min is above max");
    }
    r.finish();
    return dist;
}

void read_run(Reader r, Scenario::Run& out) {
    out.sample_every_s = r.seconds("sample_every", out.sample_every_s);
    if (out.sample_every_s <= 0) r.error(r.node("sample_every"), "run.sample_every is above 0");
    out.restart_on_failure = r.one_of("restart", "never", {"never", "on_failure"}) == "on_failure";
    out.restart_delay_s = r.seconds("restart_delay", out.restart_delay_s);
    out.time_scale = r.number("time_scale", 1, 0.001, 100000);
    r.finish();
}

void read_device(Reader r, Scenario::DeviceSection& out) {
    out.name = r.text("name", out.name);
    out.memory_limit = r.bytes("memory_limit", 0);
    for (const toml::table* t : r.tables("tenant")) {
        Reader tr(*t, r.file(), "device.tenant.", r.first_error());
        Tenant tenant;
        tenant.name = tr.text("name", "tenant");
        tenant.bytes = tr.bytes("bytes", 0);
        tenant.from_s = tr.seconds("from", 0);
        tenant.until_s = tr.seconds("until", 1e18);
        tenant.grows_per_hour = tr.bytes("grows_per_hour", 0);
        tr.finish();
        out.tenants.push_back(tenant);
    }
    r.finish();
}

void read_model(Reader r, Scenario::Model& out) {
    out.config = r.text("config", out.config);
    out.dtype = r.one_of("dtype", out.dtype, {"auto", "float32", "float16", "bfloat16"});
    out.quantization = r.one_of("quantization", out.quantization,
                                {"auto", "none", "fp8", "awq", "gptq", "w8a8_int8", "bitsandbytes",
                                 "mxfp4"});
    out.tensor_parallel_size = r.count("tensor_parallel_size", 1, 1, 64);
    r.finish();
}

void read_server(Reader r, Scenario::Server& out) {
    out.gpu_memory_utilization = r.number("gpu_memory_utilization", 0.90, 0, 1);
    if (!(out.gpu_memory_utilization > 0)) {
        r.error(r.node("gpu_memory_utilization"),
                "server.gpu_memory_utilization is a share of the card above 0, at most 1");
    }
    out.max_model_len = r.count("max_model_len", 0, 1, kTokensMax);
    out.max_num_seqs = r.count("max_num_seqs", 0, 1, 1'000'000);
    out.max_num_batched_tokens = r.count("max_num_batched_tokens", 0, 1, kTokensMax);
    out.enable_chunked_prefill = r.flag("enable_chunked_prefill", true);
    out.enable_prefix_caching = r.flag("enable_prefix_caching", true);
    out.block_size = r.count("block_size", 16, 1, 4096);
    out.num_gpu_blocks_override = r.count("num_gpu_blocks_override", 0, 1, 1'000'000'000);
    out.kv_cache_dtype =
        r.one_of("kv_cache_dtype", "auto",
                 {"auto", "fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16", "float16", "float32"});
    out.kv_pool = r.one_of("kv_pool", "preallocated", {"preallocated", "on_demand"});
    out.kv_reservation = r.one_of("kv_reservation", "paged", {"paged", "max", "pow2", "oracle"});
    out.preemption = r.one_of("preemption", "recompute", {"recompute", "off"});
    out.watermark = r.number("watermark", 0, 0, 0.9);
    out.scheduler_reserve_full_isl = r.flag("scheduler_reserve_full_isl", true);
    out.cudagraph_sizes_given = r.has("cudagraph_capture_sizes");
    out.cudagraph_capture_sizes = r.counts("cudagraph_capture_sizes");
    out.enforce_eager = r.flag("enforce_eager", false);
    out.engine_version = r.text("engine_version", out.engine_version);
    out.profile = r.one_of("profile", out.profile, {"max_num_batched_tokens", "max_model_len"});
    r.finish();
}

void read_host(Reader r, Scenario::Host& out) {
    out.load = r.one_of("load", out.load, {"full_copy", "shard_stream", "mmap", "mmap_locked"});
    out.checkpoint_bytes = r.bytes("checkpoint_bytes", 0);
    out.memory_limit = r.bytes("memory_limit", 0);
    out.pinned_pool_limit = r.bytes("pinned_pool_limit", 0);
    out.tokenizer_bytes_per_token = r.bytes("tokenizer_bytes_per_token", 0);
    // Real bytes in a real process: never more than a small machine can lose.
    if (out.load == "full_copy" && out.checkpoint_bytes > kGiB) {
        r.error(r.node("checkpoint_bytes"),
                "host.checkpoint_bytes: full_copy takes real memory and refuses more than 1GiB");
    }
    if (out.memory_limit != 0 && out.checkpoint_bytes > 4 * out.memory_limit) {
        r.error(r.node("checkpoint_bytes"), "host.checkpoint_bytes is at most 4 times host.memory_limit");
    }
    if (out.memory_limit != 0 && (out.memory_limit < 32 * kMiB || out.memory_limit > kGiB)) {
        r.error(r.node("memory_limit"), "host.memory_limit is from 32MiB to 1GiB");
    }
    r.finish();
}

void read_gateway(Reader r, Scenario::Gateway& out) {
    out.max_input_tokens = r.count("max_input_tokens", 0, 1, kTokensMax);
    out.max_output_tokens = r.count("max_output_tokens", 0, 1, kTokensMax);
    out.max_n = r.count("max_n", 0, 1, 1000);
    out.max_concurrent_requests = r.count("max_concurrent_requests", 0, 1, 1'000'000);
    for (const std::string& text : r.texts("deny")) {
        const auto rule = parse_gateway_rule(text);
        if (!rule) {
            r.error(r.node("deny"), fmt::format("gateway.deny: '{}' is not a rule such as "
                                                "\"prompt_tokens > 28000\" (fields: prompt_tokens, "
                                                "output_tokens, n)",
                                                text));
            break;
        }
        out.deny.push_back(*rule);
    }
    r.finish();
}

PlannedRequest read_request(Reader r) {
    PlannedRequest q;
    q.at_s = r.seconds("at", 0);
    q.prompt_tokens = r.count("prompt_tokens", 128, 1, kTokensMax);
    q.output_tokens = r.count("output_tokens", 16, 1, kTokensMax);
    q.n = r.count("n", 1, 1, 1000);
    q.count = r.count("count", 1, 1, 1'000'000);
    q.every_s = r.seconds("every", 0);
    q.cancel_after_s = r.has("cancel_after") ? r.seconds("cancel_after", 0) : -1;
    r.finish();
    return q;
}

std::vector<RatePoint> read_rate(Reader& r) {
    std::vector<RatePoint> points;
    const toml::node* rate = r.node("arrival_rate");
    if (rate == nullptr) return points;
    if (rate->is_number()) {
        const double v = rate->value<double>().value_or(-1);
        if (!(v >= 0 && v <= 1e5)) r.error(rate, "workload.arrival_rate is from 0 to 100000 a second");
        return {{0, v}};
    }
    const toml::array* list = rate->as_array();
    if (list == nullptr) r.error(rate, "workload.arrival_rate takes a number or a list of points");
    if (list == nullptr) return points;
    for (const toml::node& item : *list) {
        const toml::array* pair = item.as_array();
        std::optional<double> at, value;
        if (pair != nullptr && pair->size() == 2) {
            const toml::node& first = *pair->get(0);
            if (const auto t = first.value_exact<std::string>()) at = parse_seconds(*t);
            else if (first.is_number()) at = first.value<double>();
            if (pair->get(1)->is_number()) value = pair->get(1)->value<double>();
        }
        if (!at || !value || !(*at >= 0) || !(*value >= 0 && *value <= 1e5) ||
            (!points.empty() && *at < points.back().at_s)) {
            r.error(&item, "workload.arrival_rate takes points such as [[\"0h\", 1.0], [\"9h\", 5.0]], "
                           "in order of time");
            break;
        }
        points.push_back({*at, *value});
    }
    return points;
}

void read_workload(Reader r, Scenario::Workload& out) {
    out.seed = r.count("seed", 1, 0, 1ULL << 62);
    out.duration_s = r.seconds("duration", 60);
    out.poisson = r.one_of("arrivals", "poisson", {"poisson", "even"}) == "poisson";
    out.arrival_rate = read_rate(r);
    out.rate_repeat_s = r.seconds("repeat", 0);
    out.concurrency = r.count("concurrency", 0, 1, 1'000'000);
    out.prompt_tokens = read_dist(r, r.node("prompt_tokens"), "workload.prompt_tokens", 0);
    out.output_tokens = read_dist(r, r.node("output_tokens"), "workload.output_tokens", 0);
    out.n = r.count("n", 1, 1, 1000);
    out.cancel_share = r.number("cancel_share", 0, 0, 1);
    out.cancel_after_s = r.seconds("cancel_after", out.cancel_after_s);
    out.shared_prefix = r.count("shared_prefix", 0, 0, kTokensMax);
    out.requests_file = r.text("requests_file", "");
    for (const toml::table* t : r.tables("request")) {
        out.requests.push_back(read_request(Reader(*t, r.file(), "workload.request.", r.first_error())));
    }
    const auto unset = [](const TokenDist& d) { return d.kind == TokenDist::Kind::fixed && d.value == 0; };
    if (unset(out.prompt_tokens)) out.prompt_tokens.value = 512;
    if (unset(out.output_tokens)) out.output_tokens.value = 128;
    r.finish();
}

FaultSpec read_fault(Reader r) {
    FaultSpec f;
    std::vector<std::string> kinds;
    for (const FaultKind& k : fault_kinds()) kinds.emplace_back(k.kind);
    f.kind = r.text("kind", "");
    if (std::find(kinds.begin(), kinds.end(), f.kind) == kinds.end()) {
        r.error(r.node("kind"), fmt::format("fault.kind '{}' is unknown{}; known: {}", f.kind,
                                            did_you_mean(nearest(f.kind, kinds)), fmt::join(kinds, " ")));
    }
    f.from_s = r.seconds("from", 0);
    f.until_s = r.seconds("until", 1e8);
    f.share = r.number("share", 1, 0, 1);
    f.bytes = r.bytes("bytes", 0);
    f.bytes_per_hour = r.bytes("bytes_per_hour", 0);
    f.bytes_per_request = r.bytes("bytes_per_request", 0);
    f.blocks_per_request = r.count("blocks_per_request", 0, 0, 1'000'000);
    f.on = r.one_of("on", "client_disconnect", {"client_disconnect", "error"});
    f.library = r.one_of("library", "cublas", {"cublas", "cudnn", "nccl"});
    f.wraps = r.text("wraps", "cudaErrorInvalidConfiguration");
    f.call = r.text("call", "cudaMalloc");
    f.nth = r.count("nth", 0, 1, 1ULL << 40);
    f.above = r.bytes("above", 0);
    f.times = r.count("times", 1, 1, 1ULL << 40);
    f.seed = r.count("seed", 0, 0, 1ULL << 62);
    if (f.kind == "device_call" && f.nth == 0 && f.above == 0) {
        r.error(r.node("kind"), "fault device_call wants nth (which call) or above (which size)");
    }
    r.finish();
    return f;
}

ActionSpec read_action(Reader r) {
    static const std::vector<std::string> kKeys = {
        "server.max_num_seqs",           "server.max_num_batched_tokens",
        "server.enable_chunked_prefill", "server.gpu_memory_utilization",
        "server.watermark",              "gateway.max_input_tokens",
        "gateway.max_output_tokens",     "gateway.max_concurrent_requests",
        "gateway.max_n",                 "gateway.deny",
        "workload.arrival_rate"};
    ActionSpec a;
    a.at_s = r.seconds("at", 0);
    if (const toml::table* set = r.table("set")) {
        for (const auto& [key, value] : *set) {
            ActionSpec::Setting s;
            s.key = std::string(key.str());
            if (std::find(kKeys.begin(), kKeys.end(), s.key) == kKeys.end()) {
                r.error(&value, fmt::format("action.set: {} cannot be set while running{}; known: {}",
                                            s.key, did_you_mean(nearest(s.key, kKeys)),
                                            fmt::join(kKeys, " ")));
            }
            if (const auto b = value.value_exact<bool>()) s.number = *b ? 1 : 0;
            else if (value.is_number()) s.number = value.value<double>().value_or(0);
            else if (const auto t = value.value_exact<std::string>()) s.text = *t;
            else r.error(&value, fmt::format("action.set: {} takes a number, true, false or a text", s.key));
            if (s.key == "gateway.deny" && !parse_gateway_rule(s.text)) {
                r.error(&value, "action.set: gateway.deny takes a rule such as \"prompt_tokens > 28000\"");
            }
            a.settings.push_back(std::move(s));
        }
    }
    a.verb = r.has("do") ? r.one_of("do", "memory_summary", {"restart", "memory_summary"}) : "";
    if (a.verb.empty() && a.settings.empty()) r.error(nullptr, "action wants set = {...} or do = \"...\"");
    r.finish();
    return a;
}

void read_fix(Reader r, std::vector<std::string>& out) {
    out = r.texts("apply");
    std::vector<std::string> repairs;
    for (const FaultKind& k : fault_kinds()) {
        if (*k.repair != '\0') repairs.emplace_back(k.repair);
    }
    for (const std::string& name : out) {
        if (std::find(repairs.begin(), repairs.end(), name) != repairs.end()) continue;
        r.error(r.node("apply"), fmt::format("fix.apply: '{}' is unknown{}; known: {}", name,
                                             did_you_mean(nearest(name, repairs)), fmt::join(repairs, " ")));
    }
    if (out.size() > 2) {
        r.error(r.node("apply"), "fix.apply takes at most two repairs at a time: find out which it is");
    }
    r.finish();
}

}  // namespace

std::optional<GatewayRule> parse_gateway_rule(const std::string& text) {
    GatewayRule rule;
    rule.text = text;
    std::size_t i = 0;
    const auto take = [&](auto wanted) {
        while (i < text.size() && text[i] == ' ') ++i;
        const std::size_t begin = i;
        while (i < text.size() && wanted(static_cast<unsigned char>(text[i]))) ++i;
        return text.substr(begin, i - begin);
    };
    rule.field = take([](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    rule.op = take([](unsigned char c) { return c == '<' || c == '>' || c == '='; });
    const std::string number = take([](unsigned char c) { return c != ' '; });
    const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), rule.value);
    if (ec != std::errc() || end != number.data() + number.size()) return std::nullopt;
    if (!take([](unsigned char) { return true; }).empty()) return std::nullopt;
    const bool field = rule.field == "prompt_tokens" || rule.field == "output_tokens" || rule.field == "n";
    const bool op = rule.op == ">" || rule.op == ">=" || rule.op == "<" || rule.op == "<=" || rule.op == "==";
    if (!field || !op) return std::nullopt;
    return rule;
}

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
    auto parsed = parse_toml(text, file);
    if (!parsed) return fail(Error::parse(one_line(parsed.error().message)));
    const toml::table root = std::move(*parsed);
    std::optional<Error> error;
    Scenario s;
    s.path = file;
    s.text_hash = stable_hash(text);
    const toml::table empty;
    Reader r(root, file, "", error);
    const auto section = [&](const char* name) {
        const toml::table* t = r.table(name);
        return Reader(t != nullptr ? *t : empty, file, std::string(name) + ".", error);
    };
    read_run(section("run"), s.run);
    read_device(section("device"), s.device);
    read_model(section("model"), s.model);
    read_server(section("server"), s.server);
    Reader a = section("allocator");
    s.allocator.conf = a.text("conf", "");
    s.allocator.per_process_memory_fraction = a.number("per_process_memory_fraction", 1.0, 0, 1);
    a.finish();
    read_host(section("host"), s.host);
    read_gateway(section("gateway"), s.gateway);
    read_workload(section("workload"), s.workload);
    for (const toml::table* t : r.tables("action")) s.actions.push_back(read_action(Reader(*t, file, "action.", error)));
    for (const toml::table* t : r.tables("fault")) s.faults.push_back(read_fault(Reader(*t, file, "fault.", error)));
    read_fix(section("fix"), s.fix);
    r.finish();
    if (error) return fail(Error::parse(one_line(error->message)));
    return s;
}

Result<Scenario> load_scenario(const std::string& path) {
    OOMLAB_TRY(text, read_text_file(path));
    OOMLAB_TRY(scenario, parse_scenario(text, path));
    if (!scenario.workload.requests_file.empty()) {
        std::string file = scenario.workload.requests_file;
        const std::size_t slash = path.rfind('/');
        if (file.front() != '/' && slash != std::string::npos) file = path.substr(0, slash + 1) + file;
        OOMLAB_TRY(requests, load_requests_tsv(file));
        scenario.workload.requests.insert(scenario.workload.requests.end(), requests.begin(), requests.end());
    }
    return scenario;
}

Result<std::vector<PlannedRequest>> load_requests_tsv(const std::string& path) {
    OOMLAB_TRY(text, read_text_file(path, 64 * kMiB));
    std::vector<PlannedRequest> requests;
    std::vector<std::string> columns;
    std::size_t line_number = 0;
    std::string_view rest = text;
    const auto bad = [&](const std::string& why) {
        return fail(Error::parse(fmt::format("{}:{}: {}", path, line_number, why)));
    };
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        ++line_number;
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (line.empty() || line.front() == '#') continue;
        std::vector<std::string_view> cells;
        for (std::size_t tab = 0; tab != std::string_view::npos;) {
            tab = line.find('\t');
            cells.push_back(line.substr(0, tab));
            if (tab != std::string_view::npos) line = line.substr(tab + 1);
        }
        if (columns.empty()) {
            columns.assign(cells.begin(), cells.end());
            for (const char* needed : {"at_s", "prompt_tokens", "output_tokens"}) {
                if (std::find(columns.begin(), columns.end(), needed) == columns.end()) {
                    return bad(fmt::format("the header wants a column {}", needed));
                }
            }
            continue;
        }
        PlannedRequest q;
        for (std::size_t i = 0; i < cells.size() && i < columns.size(); ++i) {
            const std::string& name = columns[i];
            const bool optional = name == "n" || name == "cancel_at_s" || name == "prefix";
            const bool needed = name == "at_s" || name == "prompt_tokens" || name == "output_tokens";
            if (!needed && (!optional || cells[i].empty())) continue;
            double value = 0;
            const char* last = cells[i].data() + cells[i].size();
            const auto [p, ec] = std::from_chars(cells[i].data(), last, value);
            if (ec != std::errc() || p != last || !(value >= 0) || value > 1e9) {
                return bad(fmt::format("{} takes a number, not '{}'", name, cells[i].substr(0, 40)));
            }
            if (name == "at_s") q.at_s = value;
            else if (name == "prompt_tokens") q.prompt_tokens = static_cast<u64>(value);
            else if (name == "output_tokens") q.output_tokens = static_cast<u64>(value);
            else if (name == "n") q.n = std::max<u64>(1, static_cast<u64>(value));
            else if (name == "cancel_at_s") q.cancel_after_s = std::max(0.0, value - q.at_s);
            else q.prefix = static_cast<u64>(value);
        }
        if (q.prompt_tokens == 0 || q.output_tokens == 0) return bad("prompt_tokens and output_tokens are above 0");
        requests.push_back(q);
    }
    if (columns.empty()) {
        return fail(Error::parse(path + ": is empty; the header is at_s, prompt_tokens, output_tokens"));
    }
    return requests;
}

}  // namespace oomlab
