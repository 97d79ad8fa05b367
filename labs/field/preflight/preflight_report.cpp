#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "labs/field/preflight/checklist.hpp"

namespace oomlab::field {
namespace {

using Json = nlohmann::ordered_json;

std::string clean(const std::string& text) {
    std::string out;
    for (char c : text.substr(0, 300)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return out;
}

const char* mark(CheckState s) {
    return s == CheckState::pass ? "pass  " : s == CheckState::fail ? "FAIL  " : "?     ";
}

std::string list_text(const std::vector<CheckItem>& items) {
    std::string out;
    int n = 0;
    for (const CheckItem& i : items) {
        out += fmt::format("  {:>2} {}{}\n", ++n, mark(i.state), i.title);
        if (!i.number.empty()) out += "            " + clean(i.number) + "\n";
        if (!i.why.empty()) out += "            " + clean(i.why) + "\n";
        if (!i.remedy.empty() && i.state != CheckState::pass)
            out += "         -> " + clean(i.remedy) + "\n";
    }
    return out;
}

Json list_json(const std::vector<CheckItem>& items) {
    Json out = Json::array();
    for (const CheckItem& i : items)
        out.push_back({{"id", i.id},
                       {"title", i.title},
                       {"state", check_state_name(i.state)},
                       {"number", i.number},
                       {"why", i.why},
                       {"remedy", i.remedy}});
    return out;
}

int count(const PreflightReport& r, CheckState s) {
    int n = 0;
    for (const CheckItem& i : r.items) n += i.state == s;
    return n;
}

}  // namespace

std::string preflight_text(const PreflightReport& r) {
    const Deployment& d = r.deployment;
    std::string out =
        fmt::format("{} {}", engine_name(d.flags.engine),
                    clean(d.flags.model.empty() ? "(no model named)" : d.flags.model));
    if (!d.flags.engine_version.empty()) out += ", version " + clean(d.flags.engine_version);
    out += ", from a " + d.kind;
    if (!d.container.empty()) out += " (" + clean(d.container) + ")";
    if (r.facts.gpu) out += ", on " + r.facts.gpu->name;
    out += "\n";
    for (const std::string& n : r.facts.notes) out += "  " + clean(n) + "\n";
    out +=
        "\nThe checklist\n" + list_text(r.items) + "\nThe seven mistakes\n" + list_text(r.mistakes);
    out += fmt::format("\n{} pass, {} fail, {} cannot be known from this file\n",
                       count(r, CheckState::pass), count(r, CheckState::fail),
                       count(r, CheckState::cannot_know));
    return out;
}

std::string preflight_json(const PreflightReport& r) {
    Json j;
    const Deployment& d = r.deployment;
    j["engine"] = engine_name(d.flags.engine);
    j["engine_version"] = d.flags.engine_version;
    j["model"] = d.flags.model;
    j["source"] = d.kind;
    j["container"] = d.container;
    j["gpu"] = r.facts.gpu ? r.facts.gpu->id : "";
    j["passed"] = count(r, CheckState::pass);
    j["failed"] = count(r, CheckState::fail);
    j["cannot_know"] = count(r, CheckState::cannot_know);
    j["items"] = list_json(r.items);
    j["mistakes"] = list_json(r.mistakes);
    j["notes"] = r.facts.notes;
    if (r.budget)
        j["budget"] = {{"fits", r.budget->fits},
                       {"weights_bytes", r.budget->weights_bytes},
                       {"activation_peak_bytes", r.budget->activation_peak_bytes},
                       {"kv_pool_bytes", r.budget->kv_pool_bytes},
                       {"kv_tokens", r.budget->kv_tokens},
                       {"max_concurrency", r.budget->max_concurrency},
                       {"headroom_bytes", r.budget->headroom_bytes}};
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace oomlab::field
