// R3 to R7, R10 and R12: published tables and scripts, with our own server or its arithmetic.
#include <fmt/format.h>

#include <cmath>

#include "kernels/sim/sim_device.hpp"
#include "labs/server/kv/buddy.hpp"
#include "labs/server/memory/caching_allocator.hpp"
#include "labs/validate/detail.hpp"

namespace oomlab::validate {
namespace {

double gib(u64 bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

constexpr const char* kOpt13b =
    R"({"architectures":["OPTForCausalLM"],"model_type":"opt","hidden_size":5120,"ffn_dim":20480,)"
    R"("num_hidden_layers":40,"num_attention_heads":40,"vocab_size":50272,"max_position_embeddings":2048,)"
    R"("torch_dtype":"float16","word_embed_proj_dim":5120,"tie_word_embeddings":true})";
constexpr const char* kYi34b =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":7168,"intermediate_size":20480,)"
    R"("num_hidden_layers":60,"num_attention_heads":56,"num_key_value_heads":8,"vocab_size":64000,)"
    R"("max_position_embeddings":16384,"torch_dtype":"bfloat16","tie_word_embeddings":false})";

}  // namespace

// PagedAttention's figure 2: OPT-13B, 15,728 KV slots, lengths of ShareGPT, a queue that never empties.
Result<Report> paged_attention(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r3"));
    OOMLAB_TRY(shape, parse_config_json(kOpt13b, "opt-13b"));
    Report report;
    report.title = figures.title;
    for (const char* policy : {"max", "pow2", "oracle", "paged"}) {
        const std::string scenario = fmt::format(
            "[device]\nname = \"sim:a100-40gb\"\n[server]\nnum_gpu_blocks_override = 984\nmax_model_len = 2048\n"
            "max_num_seqs = 256\nmax_num_batched_tokens = 2560\nenforce_eager = true\nenable_prefix_caching = false\n"
            "kv_reservation = \"{}\"\n[workload]\nseed = 3\nconcurrency = 200\nduration = \"20m\"\n"
            "prompt_tokens = {{dist = \"lognormal\", mean = 161.31, cv = 1.6, max = 2000}}\n"
            "output_tokens = {{dist = \"lognormal\", mean = 337.99, cv = 0.95, max = 2000}}\n",
            policy);
        ServeOptions options;
        options.slots = true;
        OOMLAB_TRY(run, serve(scenario, shape, {}, options));
        const server::Engine::SlotShares s = run->engine->mean_slots();
        const std::string p = policy;
        figures.row(report, p + ": slots that hold a token", 100 * s.tokens);
        if (p != "paged") {
            figures.row(report, p + ": slots reserved for tokens to come", 100 * s.reserved);
            figures.row(report, p + ": slots outside any request", 100 * (1 - s.tokens - s.reserved - s.internal));
        }
        if (figures.has(p + ": slots reserved for nothing")) figures.row(report, p + ": slots reserved for nothing", 100 * s.internal);
        figures.row(report, p + ": batch", run->engine->mean_running());
        report.wall_s += run->wall_s;
        report.simulated_s += run->engine->finish_record().makespan_s;
    }
    return report;
}

// PagedAttention's table 1, figure 3 and figures 6 to 8: arithmetic, exact.
Result<Report> exact_arithmetic(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r4"));
    OOMLAB_TRY(shape, parse_config_json(kOpt13b, "opt-13b"));
    Report report;
    report.title = figures.title;
    const u64 token = kv_bytes_per_token(shape, 1, 2);
    figures.row(report, "13B: KV slots in 12 GiB", static_cast<double>(12 * kGiB / token));
    figures.row(report, "175B: KV bytes a token", 2.0 * 96 * 12288 * 2);
    figures.row(report, "175B: KV slots in 264 GiB", static_cast<double>(264 * kGiB / (2 * 96 * 12288 * 2)));
    server::BuddyPool pool(15728);
    u64 batch = 0;
    while (pool.allocate(2048)) ++batch;
    figures.row(report, "requests of 2,048 reserved slots in 15,728", static_cast<double>(batch));
    figures.row(report, "slots that fit no further request", 100.0 * static_cast<double>(15728 - batch * 2048) / 15728.0);
    figures.row(report, "figure 3: slots never used, request A", 2048.0 - 10);
    figures.row(report, "figure 3: slots never used, request B", 512.0 - 5);
    server::KvPool paged(16, 4, false);
    std::vector<u32> blocks;
    OOMLAB_CHECK(paged.allocate(div_ceil(7, 4), blocks));
    figures.row(report, "figure 6: blocks of a 7-token prompt", static_cast<double>(blocks.size()));
    figures.row(report, "figure 6: filled slots of its last block", 7.0 - 4.0 * static_cast<double>(blocks.size() - 1));
    figures.row(report, "figure 6: blocks after two more tokens", static_cast<double>(div_ceil(9, 4)));
    report.notes.push_back("figure 15 (sharing between samples and beams) is not reproduced: beams are not modelled");
    return report;
}

// Sarathi-Serve's table 4: whole prompts in the decode step against chunks, Yi-34B on two A100.
Result<Report> chunked_prefill(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r5"));
    OOMLAB_TRY(shape, parse_config_json(kYi34b, "yi-34b"));
    Report report;
    report.title = figures.title;
    struct Set {
        const char* name;
        double rate, prompt_mean, prompt_cv, output_mean, output_cv;
        u64 longest;
    };
    // Means and spreads of log-normals with the published medians and P90s.
    static constexpr Set kSets[] = {{"sharegpt", 1.7, 2666, 1.172, 481, 0.587, 8192}, {"arxiv", 0.65, 7904, 0.504, 230, 0.475, 16384}};
    for (const Set& set : kSets) {
        double ttft[2] = {}, gap[2] = {};
        for (const bool chunked : {false, true}) {
            const std::string scenario = fmt::format(
                "[device]\nname = \"sim:a100-80gb\"\n[model]\ntensor_parallel_size = 2\n[server]\nmax_model_len = {}\n"
                "max_num_seqs = 128\nmax_num_batched_tokens = {}\nenable_chunked_prefill = {}\nprofile = \"max_model_len\"\n"
                "enforce_eager = true\n[workload]\nseed = 4\narrival_rate = {}\nduration = \"{}s\"\n"
                "prompt_tokens = {{dist = \"lognormal\", mean = {}, cv = {}, max = {}}}\n"
                "output_tokens = {{dist = \"lognormal\", mean = {}, cv = {}, max = 2000}}\n",
                set.longest, 1024, chunked, set.rate, 128 / set.rate, set.prompt_mean, set.prompt_cv, set.longest - 2048,
                set.output_mean, set.output_cv);
            OOMLAB_TRY(run, serve(scenario, shape, {}));
            ttft[chunked] = run->engine->finish_record().ttft_p50_s;
            gap[chunked] = run->engine->finish_record().itl_p99_s;
            report.wall_s += run->wall_s;
            report.simulated_s += run->engine->finish_record().makespan_s;
        }
        const std::string name = set.name;
        figures.row(report, name + ": P99 token gap, whole over chunked, at least", gap[0] / gap[1]);
        figures.row(report, name + ": P99 token gap, whole over chunked, at most", gap[0] / gap[1]);
        figures.row(report, name + ": P50 TTFT, chunked over whole, at least", ttft[1] / ttft[0]);
        report.notes.push_back(fmt::format("{}: TTFT P50 {:.2f} s whole, {:.2f} s chunked; token gap P99 {:.2f} s and {:.2f} s", name,
                                           ttft[0], ttft[1], gap[0], gap[1]));
    }
    report.notes.push_back("the published request rate is not known, so rates are the reference's own; chunks without mixing "
                           "(the table's middle row) is a scheduler we do not have");
    return report;
}

// vAttention's table 8: tokens in a page and the worst waste of a request.
Result<Report> page_size(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r6"));
    Report report;
    report.title = figures.title;
    struct Model {
        const char* name;
        u64 layers, kv_heads, head_dim;
    };
    static constexpr Model kModels[] = {{"Yi-6B", 32, 4, 128}, {"Llama-3-8B", 32, 8, 128}, {"Yi-34B", 60, 8, 128}};
    for (const u64 page : {64 * kKiB, 256 * kKiB, 2 * kMiB}) {
        for (const Model& m : kModels) {
            for (const u64 tp : {u64{1}, u64{2}}) {
                const std::string label = fmt::format("{} page, {} tp {}", human_bytes(page), m.name, tp);
                const u64 tokens = page / (m.kv_heads / tp * m.head_dim * 2);
                const double waste_mib = static_cast<double>(2 * m.layers * page * tp) / static_cast<double>(kMiB);
                if (figures.has(label + ": tokens")) figures.row(report, label + ": tokens", static_cast<double>(tokens));
                if (figures.has(label + ": worst waste")) figures.row(report, label + ": worst waste", waste_mib);
            }
        }
    }
    return report;
}

// vLLM's start-up arithmetic on an H100, worked out from model, card and flags.
Result<Report> start_up(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r7"));
    Report report;
    report.title = figures.title;
    OOMLAB_TRY(run, serve("[device]\nname = \"sim:h100-80gb\"\n[model]\nconfig = \"llama-3.1-8b\"\n[server]\n"
                          "gpu_memory_utilization = 0.95\nmax_model_len = 8192\nmax_num_seqs = 1024\n"
                          "max_num_batched_tokens = 8192\nenforce_eager = true\n", {}));
    const trace::BudgetRecord& b = run->engine->budget();
    figures.row(report, "weights", gib(b.weights_bytes));
    figures.row(report, "peak activation", gib(b.activation_peak_bytes));
    figures.row(report, "available KV cache", static_cast<double>(b.available_kv_bytes) / static_cast<double>(kGiB));
    figures.row(report, "KV tokens", static_cast<double>(b.num_gpu_blocks * b.block_size));
    figures.row(report, "tokens in 5.38 GiB at 73,728 bytes", std::floor(5.38 * static_cast<double>(kGiB) / 73728 / 16) * 16);
    figures.row(report, "tokens in 24.54 GiB at 983,040 bytes", std::floor(24.54 * static_cast<double>(kGiB) / 983040));
    report.wall_s += run->wall_s;
    return report;
}

// What simulators got wrong under memory pressure, as inequalities.
Result<Report> pathologies(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r10"));
    Report report;
    report.title = figures.title;
    const auto scenario = [](u64 blocks, u64 concurrency, const char* more) {
        return fmt::format("[device]\nname = \"sim:rtx4090\"\n[model]\nconfig = \"llama-3.1-8b\"\n[server]\n"
                           "num_gpu_blocks_override = {}\nmax_model_len = 2048\nmax_num_seqs = 256\nenforce_eager = true\n"
                           "[workload]\nseed = 8\nduration = \"120s\"\n{}prompt_tokens = 700\noutput_tokens = 300\n{}",
                           blocks, concurrency != 0 ? fmt::format("concurrency = {}\n", concurrency) : "", more);
    };
    // A cache that is smaller than one request: a named error, no livelock.
    OOMLAB_TRY(tiny, serve(scenario(40, 4, ""), {}));
    figures.row(report, "a cache below one request ends with a name (1: yes)",
                tiny->exit_status == 1 && tiny->engine->failure() && !tiny->engine->failure()->message.empty() ? 1 : 0);
    // Just below the knee and just above it.
    OOMLAB_TRY(enough, serve(scenario(1500, 0, "arrival_rate = 2.0\n"), {}));
    OOMLAB_TRY(fewer, serve(scenario(1432, 0, "arrival_rate = 2.0\n"), {}));
    figures.row(report, "4.5 % fewer blocks: TTFT P99 grows by", fewer->engine->finish_record().ttft_p99_s / enough->engine->finish_record().ttft_p99_s);
    OOMLAB_TRY(some, serve(scenario(1200, 256, ""), {}));
    OOMLAB_TRY(many, serve(scenario(1200, 1024, ""), {}));
    const auto rate = [](const Served& s) {
        return static_cast<double>(s.engine->recorder().counters.generation_tokens) / s.engine->finish_record().makespan_s;
    };
    figures.row(report, "throughput at concurrency 1,024 over 256", rate(*many) / rate(*some));
    report.wall_s += enough->wall_s + fewer->wall_s + some->wall_s + many->wall_s;
    return report;
}

// The script of vLLM's test_memory_profiling, on the simulated chip: exact.
Result<Report> memory_profiling(const Options&) {
    OOMLAB_TRY(figures, Figures::load("r12"));
    Report report;
    report.title = figures.title;
    SimProfile profile = plain_sim_profile(24 * kGiB);
    profile.context_bytes = 0;
    profile.tenants.push_back({"foreign", 512 * kMiB});
    const auto device = open_sim_device(profile);
    const auto created = device->create_context();
    OOMLAB_CHECK(created.has_value());
    const auto used = [&] {
        const auto info = device->memory().mem_info();
        return info->total_bytes - info->free_bytes;
    };
    const u64 before = used();
    CachingAllocator allocator(*device, AllocConf{});
    const auto weights = allocator.malloc(512 * kMiB, 0, Owner::weights);
    allocator.reset_peak_stats();
    const u64 weights_bytes = allocator.memory_allocated();
    const auto spike = allocator.malloc(1024 * kMiB);
    allocator.free(spike->address);
    const auto raw = device->memory().malloc(256 * kMiB);
    const u64 peak = static_cast<u64>(allocator.stats().allocated_bytes[kStatAll].peak) - weights_bytes;
    allocator.empty_cache();
    const u64 non_torch = used() - before - allocator.memory_reserved();
    const double mib = static_cast<double>(kMiB);
    figures.row(report, "peak increase", static_cast<double>(peak) / mib);
    figures.row(report, "non-torch increase", static_cast<double>(non_torch) / mib);
    figures.row(report, "consumed", static_cast<double>(used() - before) / mib);
    figures.row(report, "non-KV memory", static_cast<double>(weights_bytes + peak + non_torch) / mib);
    const auto freed = device->memory().free(*raw);
    OOMLAB_CHECK(freed.has_value());
    return report;
}

}  // namespace oomlab::validate
