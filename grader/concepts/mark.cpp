#include "grader/concepts/mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "grader/concepts/prose.hpp"

namespace oomlab::grader {
namespace {

constexpr double kBothShare = 0.25;
constexpr double kBonusMax = 0.15;
constexpr double kNearlyAll = 85;
constexpr double kBothWays = 32;
constexpr double kThrownTogether = 12;  // the most that a heap of words can earn

struct Reading {
    const Text& text;
    Occurrences found;
    Stance stance;
    Prose prose;
    std::vector<bool> reported;  // somebody's opinion, a mistake quoted: not the writer's own claim
    std::vector<bool> warned;    // says that what stands here is wrong
    std::vector<bool> copied;
    bool names_count = false;
    bool questions_count = false;
};

std::vector<bool> sentences_with(std::string_view set, const Text& text, const Occurrences& found, const Vocabulary& vocabulary) {
    std::vector<bool> out(text.sentences.size(), false);
    const i64 id = vocabulary.set_id(set);
    if (id >= 0)
        for (const Span& s : found.of_set[static_cast<std::size_t>(id)]) out[text.tokens[s.first].sentence] = true;
    return out;
}

// Under a heading such as "Common mistakes" nothing is advice.
void mark_warned_sections(const Text& text, const Occurrences& found, const Vocabulary& vocabulary, std::vector<bool>& reported) {
    const i64 id = vocabulary.set_id("warning_heading");
    if (id < 0) return;
    for (const Span& s : found.of_set[static_cast<std::size_t>(id)]) {
        const u32 section = text.tokens[s.first].section;
        const u32 heading = text.tokens[s.first].sentence;
        const u32 first = text.sentences[heading].first;
        if (section == 0 || (first > 0 && text.tokens[first - 1].section == section)) continue;
        for (u32 i = heading; i < text.sentences.size() && text.tokens[text.sentences[i].first].section == section; ++i) reported[i] = true;
    }
}

// Sentences that repeat the question or the model answer, by runs of five words.
std::vector<bool> copied_sentences(const Rubric& rubric, const Text& text) {
    constexpr std::size_t kRun = 5;
    std::unordered_set<std::string> runs;
    const auto run_at = [](const std::vector<Token>& t, std::size_t i) {
        std::string r;
        for (std::size_t k = 0; k < kRun; ++k) r += t[i + k].word + ' ';
        return r;
    };
    for (const std::string* source : {&rubric.model_answer, &rubric.question}) {
        const Text words = prepare_text(*source);
        for (std::size_t i = 0; i + kRun <= words.tokens.size(); ++i) runs.insert(run_at(words.tokens, i));
    }
    std::vector<bool> out(text.sentences.size(), false);
    for (std::size_t s = 0; s < text.sentences.size(); ++s) {
        std::size_t same = 0, all = 0;
        for (std::size_t i = text.sentences[s].first; i + kRun <= text.sentences[s].last; ++i, ++all) same += runs.count(run_at(text.tokens, i));
        out[s] = all >= 4 && same * 10 >= all * 7;
    }
    return out;
}

bool reason_near(const Reading& r, u32 sentence, const Vocabulary& vocabulary) {
    const i64 id = vocabulary.set_id("reason");
    const u32 first = r.text.sentences[sentence].first;
    const u32 last = r.text.sentences[std::min<std::size_t>(sentence + 1, r.text.sentences.size() - 1)].last;
    if (id >= 0)
        for (const Span& s : r.found.of_set[static_cast<std::size_t>(id)])
            if (s.first >= first && s.first < last) return true;
    for (u32 t = first; t < last; ++t)
        if (r.text.tokens[t].literal && r.text.tokens[t].word.find_first_of("0123456789") != std::string::npos) return true;
    return false;
}

ConceptMark judge(const Concept& c, const Reading& r, const Vocabulary& vocabulary) {
    ConceptMark m;
    m.id = c.id;
    struct Found {
        Hit hit;
        const Pattern* pattern;
    };
    const auto weak_place = [&](const Hit& h) {
        return std::any_of(h.sentences.begin(), h.sentences.end(), [&](u32 s) {
            return (r.prose.list[s] && !r.names_count) || r.prose.empty[s] || r.reported[s] || (r.text.sentences[s].question && !r.questions_count);
        });
    };
    const auto copied_place = [&](const Hit& h) {
        return std::any_of(h.sentences.begin(), h.sentences.end(), [&](u32 s) { return r.copied[s]; });
    };
    std::vector<Found> hits;
    std::vector<int> leaning(r.text.sentences.size(), 0);  // by sentence: affirmed minus denied
    for (const Pattern& p : c.claim)
        for (Hit& h : match(p, r.text, r.found, r.stance)) {
            if (p.polarity != Pattern::Polarity::affirmed) h.denied = false;
            leaning[h.sentence] += h.denied ? -1 : 1;
            hits.push_back({std::move(h), &p});
        }
    std::stable_sort(hits.begin(), hits.end(), [](const Found& a, const Found& b) { return a.hit.first < b.hit.first; });
    u32 affirmed = 0, denied = 0;
    const Found *best = nullptr, *against = nullptr, *weak = nullptr;
    bool explained = false;
    for (const Found& f : hits) {
        const bool says_yes = leaning[f.hit.sentence] > 0;
        if (f.hit.denied) {
            if (!says_yes && denied++ == 0) against = &f;
        } else if (!says_yes || copied_place(f.hit)) {
            continue;
        } else if (weak_place(f.hit)) {
            if (weak == nullptr) weak = &f;
        } else {
            if (affirmed++ == 0) best = &f;
            if (c.explain.empty() && !explained && reason_near(r, f.hit.sentence, vocabulary)) {
                explained = true;
                best = &f;
            }
        }
    }
    for (const Pattern& p : c.explain)
        for (const Hit& h : match(p, r.text, r.found, r.stance)) explained = explained || (!h.denied && affirmed > 0 && !copied_place(h));
    std::vector<Found> others;
    for (const Pattern& p : c.anti)
        for (Hit& h : match(p, r.text, r.found, r.stance)) {
            const bool counts = p.polarity != Pattern::Polarity::affirmed || !h.denied;
            if (counts && !r.reported[h.sentence]) others.push_back({std::move(h), &p});
        }
    const bool opposed = !others.empty();
    const Found* decided = best;
    if (affirmed > 0 && (opposed || denied >= affirmed + 1)) {
        m.state = State::both;
        m.share = kBothShare;
    } else if (affirmed > 0) {
        m.state = explained ? State::explained : State::claimed;
        m.share = explained ? 1.0 : c.claim_share;
    } else if (denied > 0 || opposed) {
        m.state = State::contradicted;
        decided = denied > 0 ? against : &others.front();
    } else {
        decided = weak;
        for (const Pattern& p : c.mention)
            for (Hit& h : match(p, r.text, r.found, r.stance))
                if (decided == nullptr && !h.denied && !copied_place(h)) {
                    others.push_back({std::move(h), &p});
                    decided = &others.front();
                }
        if (decided == nullptr) return m;
        m.state = State::mentioned;
        m.share = c.mention_share;
    }
    const u32 at = decided->hit.first;
    m.rule = decided->pattern->source;
    if (m.state == State::both && opposed) m.rule += "  against  " + others.front().pattern->source;
    m.where = r.text.quote(r.text.tokens[at].sentence);
    m.line = r.text.line_of(at);
    m.token = at;
    return m;
}

struct Damage {
    double penalty = 0;
    double cap = 100;
    bool fatal = false;
};

std::vector<Caught> misconceptions(const Rubric& rubric, const Reading& r, Damage& damage) {
    std::vector<Caught> out;
    for (const Misconception& m : rubric.misconceptions) {
        bool caught = false;
        for (const Pattern& p : m.any) {
            for (const Hit& h : match(p, r.text, r.found, r.stance)) {
                const bool counts = p.polarity != Pattern::Polarity::affirmed || !h.denied;
                const bool told_as_wrong = r.reported[h.sentence] || r.warned[h.sentence] ||
                                           (h.sentence + 1U < r.warned.size() && r.warned[h.sentence + 1]);
                if (!counts || caught || told_as_wrong || r.text.sentences[h.sentence].question) continue;
                caught = true;
                out.push_back({m.id, r.text.quote(h.sentence), m.reply, p.source, r.text.line_of(h.first), h.first, m.dangerous});
            }
        }
        if (!caught) continue;
        damage.penalty += m.penalty;
        damage.cap = std::min(damage.cap, m.cap);
        damage.fatal = damage.fatal || m.fatal;
    }
    return out;
}

}  // namespace

std::string_view name_of(State state) {
    switch (state) {
        case State::absent: return "absent";
        case State::mentioned: return "mentioned";
        case State::claimed: return "claimed";
        case State::explained: return "explained";
        case State::contradicted: return "contradicted";
        case State::both: return "both";
    }
    return "absent";
}

Mark mark_text(const Rubric& rubric, const Text& text) {
    Mark mark;
    mark.words = static_cast<u32>(text.tokens.size());
    const Vocabulary& vocabulary = rubric.vocabulary;
    Occurrences found = vocabulary.find(text);
    Stance stance(text, found, vocabulary);
    Prose prose = judge_prose(text, found, vocabulary);
    std::vector<bool> reported = sentences_with("reported", text, found, vocabulary);
    mark_warned_sections(text, found, vocabulary, reported);
    std::vector<bool> copied = copied_sentences(rubric, text);
    std::vector<bool> warned = sentences_with("warning", text, found, vocabulary);
    const Reading r{text,           std::move(found),    std::move(stance), std::move(prose), std::move(reported),
                    std::move(warned), std::move(copied),    rubric.names_count,
                    rubric.questions_count};

    double earned = 0, possible = 0, bonus = 0;
    u32 contradicted = 0, stated = 0;
    for (const Concept& c : rubric.concepts) {
        ConceptMark m = judge(c, r, vocabulary);
        if (c.role == Concept::Role::required) {
            possible += c.weight;
            earned += c.weight * m.share;
            contradicted += m.state == State::contradicted ? 1 : 0;
            stated += m.state == State::claimed || m.state == State::explained ? 1 : 0;
        } else if (m.share > 0) {
            bonus += c.weight * m.share;
        }
        mark.concepts.push_back(std::move(m));
    }
    const double share = possible == 0 ? 0 : (earned + std::min(bonus, kBonusMax * possible)) / possible;
    double score = 100 * std::pow(std::min(1.0, share / rubric.full), rubric.exponent);

    Damage damage;
    mark.misconceptions = misconceptions(rubric, r, damage);
    // One slip in an answer that is right in nearly everything costs points; it does not sink it.
    const bool slip = mark.misconceptions.size() == 1 && !damage.fatal && score >= kNearlyAll;
    score = std::max(0.0, score - damage.penalty);
    if (!slip) score = std::min(score, damage.cap);
    // An answer that denies what it should say knows the words only.
    const double denied = contradicted == 0 ? 0 : static_cast<double>(contradicted) / static_cast<double>(contradicted + stated);
    if (denied >= 0.5)
        score *= 0.15;
    else if (denied > 0.3)
        score *= 1 - denied;
    if (r.prose.shuffled()) {
        score = std::min(score, kThrownTogether);
        mark.notes.emplace_back("the words do not stand in the order of sentences");
    }
    if (r.prose.hedged_share >= 0.5 && text.sentences.size() > 1) {
        score = std::min(score, kBothWays);
        mark.notes.emplace_back("it has most things both ways: choose one and say why");
    }
    const bool heap = r.prose.list_share > 0.5 && r.prose.list_items >= (rubric.names_count ? 9U : 6U);
    if (heap || (r.prose.empty_share >= 0.5 && text.sentences.size() > 1)) {
        score = std::min(score * 0.4, kThrownTogether);
        mark.notes.emplace_back("names without statements: write each as a sentence and it will count");
    }
    if (std::count(r.copied.begin(), r.copied.end(), true) > 0)
        mark.notes.emplace_back("sentences that repeat the question or the model answer do not count");
    if (text.truncated) mark.notes.emplace_back("only the beginning of this long text was read");
    mark.score = std::round(2 * std::clamp(score, 0.0, 100.0)) / 2;
    mark.pass = mark.score >= rubric.pass;
    return mark;
}

Mark mark_answer(const Rubric& rubric, std::string_view answer) {
    Text text = prepare_text(answer);
    rubric.vocabulary.correct(text);
    return mark_text(rubric, text);
}

std::vector<std::string> feedback(const Rubric& rubric, const Mark& mark) {
    std::vector<std::string> out;
    const ConceptMark* best = nullptr;
    for (const ConceptMark& m : mark.concepts)
        if (m.share > 0.5 && (best == nullptr || m.share > best->share)) best = &m;
    if (best != nullptr) out.push_back(fmt::format("Well put: \"{}\"", best->where));
    std::vector<std::pair<double, std::string>> gaps;
    for (std::size_t i = 0; i < mark.concepts.size(); ++i) {
        const Concept& c = rubric.concepts[i];
        const ConceptMark& m = mark.concepts[i];
        if (c.role != Concept::Role::required || m.share >= 0.85) continue;
        if (m.state == State::contradicted || m.state == State::both)
            out.push_back(fmt::format("Look again: \"{}\". {}", m.where, c.name));
        else if (m.state == State::mentioned && !c.deepen.empty())
            gaps.emplace_back(c.weight * (1 - m.share), c.deepen);
        else if (!c.missing.empty())
            gaps.emplace_back(c.weight * (1 - m.share), c.missing);
    }
    std::stable_sort(gaps.begin(), gaps.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (gaps.size() > 3) gaps.resize(3);
    for (auto& g : gaps) out.push_back("Not yet: " + g.second);
    for (const Caught& m : mark.misconceptions) out.push_back(fmt::format("\"{}\": {}", m.where, m.reply));
    for (const std::string& n : mark.notes) out.push_back("Note: " + n + ".");
    return out;
}

}  // namespace oomlab::grader
