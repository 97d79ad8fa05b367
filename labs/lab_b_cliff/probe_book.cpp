#include "labs/lab_b_cliff/probe_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/base/prng.hpp"
#include "labs/catalog/scenario_edit.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab::lab_b {

namespace {
constexpr std::size_t kPagesMax = 256, kEntriesMax = 4096;
constexpr u64 kTokensMax = 1u << 24;
}  // namespace

u64 ProbePage::low() const {
    u64 low = range.low;
    for (const Entry& e : entries) if (e.fits) low = std::max(low, e.prompt_tokens);
    return low;
}

u64 ProbePage::high() const {
    u64 high = range.high;
    for (const Entry& e : entries) if (!e.fits) high = std::min(high, e.prompt_tokens);
    return high;
}

bool ProbePage::any_failed() const {
    return std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return !e.fits; });
}

std::string ProbePage::ruled_out(u64 prompt_tokens) const {
    for (const Entry& e : entries) {
        if (e.fits && prompt_tokens <= e.prompt_tokens) {
            return fmt::format("{} tokens fit, so {} fit as well", e.prompt_tokens, prompt_tokens);
        }
        if (!e.fits && prompt_tokens >= e.prompt_tokens) {
            return fmt::format("{} tokens failed, so {} fail as well", e.prompt_tokens, prompt_tokens);
        }
    }
    return "";
}

Result<ProbeBook> ProbeBook::open(const std::string& path) {
    ProbeBook book(path);
    std::error_code ec;
    if (!std::filesystem::exists(path, ec)) return book;
    OOMLAB_TRY(text, read_text_file(path, 4 * kMiB));
    const auto bad = [&](const char* what) {
        return fail(Error::parse(fmt::format("{}: {}; it is oomlab's own file: `oomlab reset` makes it anew", path, what)));
    };
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object() || !j.contains("pages") || !j["pages"].is_array()) return bad("is no book of probes");
    const auto count = [](const nlohmann::json& o, const char* key) -> std::optional<u64> {
        const auto it = o.find(key);
        if (it == o.end() || !it->is_number_unsigned() || it->get<u64>() > (u64{1} << 50)) return std::nullopt;
        return it->get<u64>();
    };
    for (const auto& p : j["pages"]) {
        if (!p.is_object() || book.pages_.size() >= kPagesMax) return bad("has a page that is none, or too many");
        ProbePage page;
        const auto batch = count(p, "batch"), low = count(p, "low"), high = count(p, "high"), step = count(p, "step");
        if (!batch || !low || !high || !step || *step == 0 || *high < *low || *high > kTokensMax ||
            !p.contains("configuration") || !p["configuration"].is_string() || !p.contains("probes") || !p["probes"].is_array()) {
            return bad("has a page with missing or absurd figures");
        }
        page.configuration = p["configuration"].get<std::string>();
        page.batch = *batch;
        page.range = {*low, *high, *step};
        for (const auto& e : p["probes"]) {
            const auto tokens = e.is_object() ? count(e, "prompt_tokens") : std::nullopt;
            if (!tokens || !e.contains("fits") || !e["fits"].is_boolean() || page.entries.size() >= kEntriesMax) {
                return bad("has a probe with missing or absurd figures");
            }
            page.entries.push_back({*tokens, e["fits"].get<bool>(), count(e, "peak_activation_bytes").value_or(0)});
        }
        book.pages_.push_back(std::move(page));
    }
    return book;
}

ProbePage& ProbeBook::page(const std::string& configuration, u64 batch, const Range& range) {
    for (ProbePage& p : pages_) {
        if (p.configuration == configuration && p.batch == batch) return p;
    }
    if (pages_.size() >= kPagesMax) pages_.erase(pages_.begin());
    pages_.push_back({configuration, batch, range, {}});
    return pages_.back();
}

Result<void> ProbeBook::save() const {
    nlohmann::ordered_json j;
    j["pages"] = nlohmann::ordered_json::array();
    for (const ProbePage& p : pages_) {
        nlohmann::ordered_json page = {{"configuration", p.configuration}, {"batch", p.batch}, {"low", p.range.low},
                                       {"high", p.range.high}, {"step", p.range.step}};
        page["probes"] = nlohmann::ordered_json::array();
        for (const ProbePage::Entry& e : p.entries) {
            page["probes"].push_back({{"prompt_tokens", e.prompt_tokens}, {"fits", e.fits}, {"peak_activation_bytes", e.peak_activation_bytes}});
        }
        j["pages"].push_back(std::move(page));
    }
    return runner::write_file(path_, j.dump(2) + "\n");
}

Result<std::string> configuration_hash(const CliffSetup& setup) {
    OOMLAB_TRY(text, read_text_file(setup.scenario_path));
    OOMLAB_TRY(scenario, parse_scenario(text, setup.scenario_path));
    ScenarioChange change;
    change.drop = {"gateway", "action", "run", "workload"};
    OOMLAB_TRY(edited, edit_scenario(text, setup.scenario_path, change));
    const std::string device = setup.device.empty() ? scenario.device.name : setup.device;
    return fmt::format("{:016x}", stable_hash(device, stable_hash(edited)));
}

}  // namespace oomlab::lab_b
