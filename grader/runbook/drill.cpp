#include "grader/runbook/drill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/prng.hpp"

namespace oomlab::grader {
namespace {

constexpr double kPassTypes = 0.8;  // share of the incidents
constexpr double kPassSteps = 0.8;
constexpr u32 kLookAlikesLeast = 6;

void shuffle(std::vector<const Incident*>& v, Prng& prng) {
    for (std::size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[prng.below(i)]);
}

// Every type alike often, look-alikes among them, each card once until all were played.
std::vector<const Incident*> draw(const std::vector<Incident>& cards, Prng& prng, u32 count) {
    std::vector<std::vector<const Incident*>> piles(6);
    for (const Incident& c : cards) piles[static_cast<std::size_t>(c.types.front() - 1)].push_back(&c);
    for (auto& p : piles) {
        shuffle(p, prng);
        const u32 wanted = (kLookAlikesLeast + 5) / 6;
        std::stable_sort(p.begin(), p.end(), [&, seen = 0U](const Incident* a, const Incident* b) mutable {
            (void)seen;
            return a->look_alike && !b->look_alike;
        });
        // One look-alike a type comes first, the rest in drawn order.
        if (p.size() > wanted) {
            std::vector<const Incident*> rest(p.begin() + wanted, p.end());
            shuffle(rest, prng);
            std::copy(rest.begin(), rest.end(), p.begin() + wanted);
        }
    }
    std::vector<const Incident*> out;
    for (u32 round = 0; out.size() < count; ++round)
        for (auto& p : piles)
            if (out.size() < count && !p.empty()) out.push_back(p[round % p.size()]);
    shuffle(out, prng);
    return out;
}

Facts facts_of(const Incident& card, Prng& prng) {
    Facts facts = card.facts;
    for (const auto& [name, range] : card.ranges) {
        const double v = range.first + (range.second - range.first) * prng.uniform();
        facts[name] = range.second > 2 ? std::round(v) : std::round(v * 100) / 100;
    }
    return facts;
}

Played play(const Incident& card, Facts facts, const DecisionTable& table, const DrillLanguage& language) {
    Played p;
    p.id = card.id;
    p.story = card.story;
    p.because = card.because;
    p.wanted = card.types;
    p.cures = card.cures;
    const Rule* rule = decide(table, facts);
    p.facts = std::move(facts);
    if (rule == nullptr) return p;
    p.rule_line = rule->line;
    p.given = rule->type;
    p.steps = rule->steps;
    p.right_type = std::find(card.types.begin(), card.types.end(), rule->type) != card.types.end();
    bool captured = false;
    for (const std::string& name : rule->steps) {
        const Step& step = language.steps.at(name);
        captured = captured || step.captures;
        if (!step.dangerous.empty()) p.dangers.push_back(fmt::format("{}: {}", name, step.dangerous));
        if (step.restarts && !captured) p.dangers.push_back(fmt::format("{} before anything was captured: the evidence is gone", name));
    }
    const bool cures = std::any_of(rule->steps.begin(), rule->steps.end(), [&](const std::string& s) { return std::find(card.cures.begin(), card.cures.end(), s) != card.cures.end(); });
    p.safe_step = cures && p.dangers.empty();
    return p;
}

}  // namespace

DrillResult play_drill(const DecisionTable& table, const std::vector<Incident>& cards, const DrillLanguage& language, u64 seed, u32 count) {
    OOMLAB_CHECK(count >= kDrillLeast);
    DrillResult out;
    out.seed = seed;
    Prng prng = Prng(seed).fork("runbook drill");
    const std::vector<const Incident*> drawn = draw(cards, prng, count);
    Prng figures = Prng(seed).fork("runbook drill figures");
    std::set<int> given;
    for (const Incident* card : drawn) {
        Played p = play(*card, facts_of(*card, figures), table, language);
        out.right_types += p.right_type ? 1 : 0;
        out.safe_steps += p.safe_step ? 1 : 0;
        out.dangers += p.dangers.empty() ? 0 : 1;
        given.insert(p.given);
        out.played.push_back(std::move(p));
    }
    const auto n = static_cast<double>(count);
    const double types = out.right_types / n, steps = out.safe_steps / n;
    out.score = std::round(2 * 100 * (0.6 * types + 0.4 * steps)) / 2;
    if (out.dangers > 0) out.score = std::min(out.score, 50.0);
    out.pass = types >= kPassTypes && steps >= kPassSteps && out.dangers == 0;
    return out;
}

std::string drill_as_json(const DrillResult& r) {
    using nlohmann::ordered_json;
    ordered_json out;
    out["seed"] = r.seed;
    out["played"] = r.played.size();
    out["right_types"] = r.right_types;
    out["safe_steps"] = r.safe_steps;
    out["dangers"] = r.dangers;
    out["score"] = r.score;
    out["pass"] = r.pass;
    out["incidents"] = ordered_json::array();
    for (const Played& p : r.played) {
        ordered_json facts;
        for (const auto& [name, value] : p.facts) std::visit([&](const auto& v) { facts[name] = v; }, value);
        out["incidents"].push_back({{"id", p.id}, {"facts", facts}, {"rule_line", p.rule_line}, {"type", p.given}, {"right_types", p.wanted}, {"right", p.right_type}, {"steps", p.steps}, {"safe", p.safe_step}, {"dangers", p.dangers}});
    }
    return out.dump(2);
}

std::string drill_as_text(const DrillResult& r) {
    std::string out;
    for (const Played& p : r.played) {
        if (p.right_type && p.safe_step) continue;
        out += fmt::format("  {}\n", p.story);
        std::string facts;
        for (const auto& [name, value] : p.facts) facts += fmt::format("{}{}={}", facts.empty() ? "" : ", ", name, show(value));
        out += fmt::format("    observed: {}\n", facts);
        if (p.rule_line == 0)
            out += "    no rule of the table holds: the reader is left alone here\n";
        else if (!p.right_type)
            out += fmt::format("    the rule at line {} says type {}; it is type {}: {}\n", p.rule_line, p.given, fmt::join(p.wanted, " or "), p.because);
        else if (p.dangers.empty())
            out += fmt::format("    type {} is right, but none of the steps ({}) helps; one of these would: {}\n", p.given, fmt::join(p.steps, ", "), fmt::join(p.cures, ", "));
        for (const std::string& d : p.dangers) out += fmt::format("    DANGEROUS {}\n", d);
    }
    out += fmt::format("{} incidents (seed {}): {} of the right type, {} led to a safe step, {} to a dangerous one: {}\n", r.played.size(), r.seed, r.right_types, r.safe_steps, r.dangers,
                       r.pass ? "a pass" : "not yet (at least 80% right and safe, none dangerous)");
    return out;
}

}  // namespace oomlab::grader
