#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "labs/field/budget/budget_parts.hpp"
#include "labs/field/budget/budget_report.hpp"

namespace oomlab::field {
namespace {

// Names come from files of strangers.
std::string clean(const std::string& text) {
    std::string out;
    for (char c : text.substr(0, 240)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return out;
}

std::string engine_text(const Budget& b) {
    std::string out = b.flags.engine == Engine::vllm     ? "vLLM"
                      : b.flags.engine == Engine::sglang ? "SGLang"
                                                         : "llama.cpp";
    if (!b.flags.engine_version.empty())
        out += " " + clean(b.flags.engine_version);
    else if (b.flags.engine == Engine::vllm)
        out += " 0.19 rules";
    return out;
}

std::string bar(i64 bytes, u64 total) {
    const double share =
        total > 0 ? std::max(0.0, static_cast<double>(bytes) / static_cast<double>(total)) : 0.0;
    const int cells = std::min(40, static_cast<int>(std::lround(share * 40)));
    return std::string(static_cast<std::size_t>(bytes > 0 ? std::max(1, cells) : 0), '#');
}

}  // namespace

std::string budget_text(const Budget& b, bool explain) {
    std::string out = fmt::format("{} on {} ({}), {}", clean(b.shape.name), clean(b.gpu.name),
                                  gib_text(b.total_bytes), engine_text(b));
    if (b.flags.tensor_parallel_size > 1 || b.flags.pipeline_parallel_size > 1)
        out += fmt::format(", tp {} pp {}: figures of one GPU", b.flags.tensor_parallel_size,
                           b.flags.pipeline_parallel_size);
    out += "\n";
    if (b.flags.engine != Engine::llama_cpp)
        out += fmt::format(
            "  fraction {:.3g}, max_model_len {}, max_num_seqs {}, max_num_batched_tokens {}, "
            "chunked prefill {}, KV {}\n",
            b.resolved.fraction, grouped(b.resolved.max_model_len),
            grouped(b.resolved.max_num_seqs), grouped(b.resolved.max_num_batched_tokens),
            b.resolved.chunked_prefill ? "on" : "off", clean(b.flags.kv_cache_dtype));
    out += "\n";
    for (const BudgetLine& line : b.lines) {
        out += fmt::format("  {:<26} {:>12}  {}\n", line.title, gib_text(line.bytes),
                           bar(line.bytes, b.total_bytes));
        if (!explain) continue;
        if (!line.moment.empty()) out += fmt::format("      when    {}\n", line.moment);
        if (!line.formula.empty()) out += fmt::format("      formula {}\n", line.formula);
        if (!line.numbers.empty())
            out +=
                fmt::format("      numbers {} = {}\n", clean(line.numbers), gib_text(line.bytes));
        if (!line.error.empty()) out += fmt::format("      error   {}\n", line.error);
    }
    out += fmt::format("  {:<26} {:>12}\n\n", "card", gib_text(b.total_bytes));
    out += fmt::format("  KV: {} bytes a token, {} tokens", grouped(b.kv_bytes_per_token),
                       grouped(b.kv_tokens));
    if (b.flags.engine == Engine::llama_cpp)
        out += fmt::format(", {} slots\n", b.resolved.max_num_seqs);
    else
        out += fmt::format("; {:.2f} requests of {} tokens at once; longest single request {}\n",
                           b.max_concurrency, grouped(b.resolved.max_model_len),
                           grouped(b.longest_request));
    if (explain && b.layout.groups > 1)
        out += fmt::format(
            "      layers of {} kinds share the pool in {} groups of {} ({} padding layers), "
            "blocks of {} tokens\n",
            (b.layout.full_groups > 0) + (b.layout.sliding_groups > 0) +
                (b.layout.linear_groups > 0),
            b.layout.groups, b.layout.group_size, b.layout.padding_layers, b.layout.block_tokens);
    for (std::size_t s = 0; s < b.stages.size() && b.stages.size() > 1; ++s)
        out += fmt::format("  stage {}: layers {} to {}, weights {}, activations {}\n", s,
                           b.stages[s].first_layer, b.stages[s].last_layer - 1,
                           gib_text(b.stages[s].weights_bytes),
                           gib_text(b.stages[s].activation_bytes));
    if (b.fits) out += "  fits: yes\n";
    for (const std::string& reason : b.reasons) out += "  fits: no, " + reason + "\n";
    if (!b.changes.empty()) {
        out += "\n  each of these alone makes it fit:\n";
        for (const BudgetChange& c : b.changes)
            out += fmt::format("    {}\n        gives  {}\n        costs  {}\n", c.flag, c.effect,
                               c.cost);
    } else if (!b.fits) {
        out += "\n  no single change that is known here makes it fit\n";
    }
    for (const std::string& text : b.resolved.assumed) out += "  assumed: " + clean(text) + "\n";
    for (const std::string& text : b.unknown) out += "  unknown: " + clean(text) + "\n";
    return out;
}

std::string compare_text(const Budget& a, const std::string& name_a, const Budget& b,
                         const std::string& name_b) {
    std::string out = fmt::format("{:<26} {:>22} {:>22} {:>14}\n", "", clean(name_a).substr(0, 22),
                                  clean(name_b).substr(0, 22), "difference");
    const auto row = [&](const std::string& title, i64 x, i64 y) {
        out += fmt::format("{:<26} {:>22} {:>22} {:>14}\n", title, gib_text(x), gib_text(y),
                           gib_text(y - x));
    };
    for (const BudgetLine& line : a.lines) {
        i64 other = 0;
        for (const BudgetLine& l : b.lines)
            if (l.id == line.id) other = l.bytes;
        row(line.title, line.bytes, other);
    }
    row("card", static_cast<i64>(a.total_bytes), static_cast<i64>(b.total_bytes));
    const auto count = [&](const char* title, u64 x, u64 y) {
        out += fmt::format(
            "{:<26} {:>22} {:>22} {:>14}\n", title, grouped(x), grouped(y),
            x > 0 ? fmt::format("{:+.1f} %",
                                100.0 * (static_cast<double>(y) / static_cast<double>(x) - 1.0))
                  : "");
    };
    count("KV bytes a token", a.kv_bytes_per_token, b.kv_bytes_per_token);
    count("KV tokens", a.kv_tokens, b.kv_tokens);
    out += fmt::format("{:<26} {:>22.2f} {:>22.2f}\n", "requests at full length", a.max_concurrency,
                       b.max_concurrency);
    out +=
        fmt::format("{:<26} {:>22} {:>22}\n", "fits", a.fits ? "yes" : "no", b.fits ? "yes" : "no");
    return out;
}

}  // namespace oomlab::field
