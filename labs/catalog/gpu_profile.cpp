#include "labs/catalog/gpu_profile.hpp"

#include <cctype>
#include <filesystem>
#include <optional>

#include "labs/catalog/content_dir.hpp"
#include "labs/catalog/toml_reader.hpp"

namespace oomlab {
namespace {

namespace fs = std::filesystem;

Result<GpuProfile> read(const std::string& path, const std::string& id, const std::string& text) {
    OOMLAB_TRY(table, parse_toml(text, path));
    std::optional<Error> error;
    TomlReader r(table, path, "", error);
    GpuProfile gpu;
    gpu.id = id;
    gpu.name = r.text("name", id);
    gpu.total_bytes = r.bytes("total", 0);
    gpu.context_bytes = r.bytes("context", 0);
    gpu.peak_flops_16 = r.number("peak_tflops_16", 0, 0, 1e6) * 1e12;
    gpu.peak_ops_8 = r.number("peak_tops_8", 0, 0, 1e6) * 1e12;
    gpu.peak_bytes_per_s = r.number("peak_gb_per_s", 0, 0, 1e6) * 1e9;
    const double capability = r.number("compute_capability", 8.0, 3.0, 20.0);
    gpu.sm_major = static_cast<int>(capability);
    gpu.sm_minor = static_cast<int>(capability * 10.0 + 0.5) - gpu.sm_major * 10;
    gpu.has_bf16 = r.flag("bf16", true);
    gpu.graph_first_bytes = r.bytes("graph_first", 180 * kMiB);
    gpu.graph_each_bytes = r.bytes("graph_each", 8 * kMiB);
    gpu.cublas_workspace_bytes = r.bytes("cublas_workspace", 8519680);
    gpu.flops_share = r.number("flops_share", gpu.flops_share, 0.01, 1);
    gpu.bandwidth_share = r.number("bandwidth_share", gpu.bandwidth_share, 0.01, 1);
    gpu.step_overhead_s = r.number("step_overhead_us", gpu.step_overhead_s * 1e6, 0, 1e6) / 1e6;
    gpu.sources = r.texts("sources");
    r.finish();
    if (gpu.total_bytes == 0 || gpu.context_bytes >= gpu.total_bytes)
        r.error(table.get("total"),
                "total must be given and larger than context, as in total = \"79.19GiB\"");
    if (error) return fail(std::move(*error));
    return gpu;
}

}  // namespace

Result<GpuProfile> load_gpu_profile(const std::string& name_or_path) {
    std::error_code ec;
    std::string path = name_or_path;
    if (is_plain_name(name_or_path)) {
        OOMLAB_TRY(content, content_dir());
        const std::string inside = content + "/gpus/" + name_or_path + ".toml";
        if (fs::is_regular_file(inside, ec)) path = inside;
    }
    if (!fs::is_regular_file(path, ec)) {
        const auto names = gpu_profile_names();
        const std::string close = nearest(name_or_path, names);
        std::string list;
        for (const std::string& n : names) list += (list.empty() ? "" : " ") + n;
        return fail(Error::io(name_or_path + ": no such GPU profile" +
                              (close.empty() ? "" : " (did you mean " + close + "?)") +
                              "; known: " + list));
    }
    OOMLAB_TRY(text, read_text_file(path, 256 * kKiB));
    return read(path, fs::path(path).stem().string(), text);
}

Result<GpuProfile> load_gpu_or_size(const std::string& name_path_or_size) {
    if (!name_path_or_size.empty() && name_path_or_size.front() >= '0' &&
        name_path_or_size.front() <= '9') {
        if (auto bytes = parse_bytes(name_path_or_size)) {
            if (*bytes < kGiB || *bytes > 4096 * kGiB)
                return fail(Error::usage(name_path_or_size +
                                         " is no GPU's memory: give 1GiB to 4096GiB, or a name"));
            GpuProfile gpu;
            gpu.id = gpu.name = human_bytes(*bytes);
            gpu.total_bytes = *bytes;
            gpu.context_bytes =
                static_cast<u64>((*bytes >= 70 * kGiB ? 0.5 : 0.4) * static_cast<double>(kGiB));
            gpu.sm_major = 8;
            gpu.graph_first_bytes = 180 * kMiB;
            gpu.graph_each_bytes = 8 * kMiB;
            gpu.cublas_workspace_bytes = 8519680;
            gpu.sources = {"a size given by hand: no rates, a middle value for the context"};
            return gpu;
        }
    }
    auto exact = load_gpu_profile(name_path_or_size);
    if (exact || exact.error().kind != Error::Kind::io) return exact;
    if (auto guess = guess_gpu(name_path_or_size)) return load_gpu_profile(*guess);
    return exact;
}

std::vector<std::string> gpu_profile_names() {
    auto content = content_dir();
    if (!content) return {};
    return names_in(*content + "/gpus", ".toml");
}

std::optional<std::string> guess_gpu(const std::string& text) {
    std::string low;
    for (char c : text) {
        const auto l = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (std::isalnum(static_cast<unsigned char>(l))) low += l;
    }
    const auto has = [&](const char* part) { return low.find(part) != std::string::npos; };
    if (has("gb200") || has("h20") != has("h200")) return std::nullopt;
    if (has("b200")) return "b200";
    if (has("h200")) return "h200";
    if (has("h100"))
        return has("nvl") || has("94gb") ? std::nullopt : std::optional<std::string>("h100-80gb");
    if (has("a100")) return has("40gb") ? "a100-40gb" : "a100-80gb";
    if (has("l40s")) return "l40s";
    if (has("l40")) return std::nullopt;
    if (has("nvidial4") || low == "l4" || has("l424g")) return "l4";
    if (has("a10g")) return "a10g";
    if (has("4090"))
        return has("48gb") || has("laptop") ? std::nullopt : std::optional<std::string>("rtx4090");
    if (has("3060") && !has("ti") && !has("laptop")) return "rtx3060-12gb";
    if (has("teslat4") || low == "t4" || has("t416g") || low == "nvidiat4") return "t4";
    return std::nullopt;
}

}  // namespace oomlab
