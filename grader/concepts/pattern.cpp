#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "grader/concepts/matcher.hpp"

namespace oomlab::grader {
namespace {

constexpr u32 kWindowMax = 4000;

u32 next_break(const Text& text, u32 from) {
    u32 p = from + 1;
    while (p < text.tokens.size() && text.tokens[p].before < Break::clause) ++p;
    return p;
}

// Behind a comma: is this one more item of "a, b or c"?
bool goes_on_as_list(const Text& text, u32 from, u32 end) {
    constexpr u32 kItemMax = 9;
    for (u32 p = from; p < end && p < from + kItemMax; ++p)
        if (text.tokens[p].word == "or" || text.tokens[p].word == "nor") return true;
    return false;
}

struct Scope {
    u32 first;
    u32 last;  // tokens [first, last)
};

Scope scope_of(const Pattern& p, const Text& text, u32 token) {
    const auto n = static_cast<u32>(text.tokens.size());
    if (p.sentences == 0) return {0, n};
    const u32 s = text.tokens[token].sentence;
    if (p.section) {
        u32 a = token, b = token;
        while (a > 0 && text.tokens[a - 1].section == text.tokens[token].section) --a;
        while (b < n && text.tokens[b].section == text.tokens[token].section) ++b;
        return {a, b};
    }
    const u32 reach = p.sentences - 1;
    const u32 a = s >= reach ? s - reach : 0;
    const u32 b = std::min(static_cast<u32>(text.sentences.size()) - 1, s + reach);
    return {text.sentences[a].first, text.sentences[b].last};
}

bool overlaps(const Span& a, const Span& b) { return a.first <= b.last && b.first <= a.last; }

class Search {
  public:
    Search(const Pattern& pattern, const Text& text, const Occurrences& found)
        : pattern_(pattern), text_(text), found_(found) {}

    // Completes a match that begins with `start`; true when `terms` holds one span an element.
    bool complete(const Span& start, std::vector<Span>& terms) {
        scope_ = scope_of(pattern_, text_, start.first);
        terms = {start};
        return next(1, terms);
    }

  private:
    bool next(std::size_t element, std::vector<Span>& terms) {
        if (element == pattern_.elements.size()) return true;
        const Pattern::Element& e = pattern_.elements[element];
        const std::vector<Span>& spans = found_.of_set[e.set];
        const u32 lo = std::min_element(terms.begin(), terms.end(), [](auto& a, auto& b) { return a.first < b.first; })->first;
        const u32 hi = std::max_element(terms.begin(), terms.end(), [](auto& a, auto& b) { return a.last < b.last; })->last;
        if (e.role == Pattern::Role::not_in_scope) {
            for (const Span& s : spans)
                if (s.first >= scope_.first && s.last < scope_.last) return false;
            return next(element + 1, terms);
        }
        if (e.role == Pattern::Role::not_between) {
            for (const Span& s : spans) {
                if (s.first <= lo || s.last >= hi) continue;
                if (std::none_of(terms.begin(), terms.end(), [&](const Span& t) { return overlaps(s, t); })) return false;
            }
            return next(element + 1, terms);
        }
        // Nearest first, so that a sentence with several pairs is read as it was meant.
        std::vector<std::pair<u32, Span>> candidates;
        const auto begin = std::lower_bound(spans.begin(), spans.end(), scope_.first, [](const Span& s, u32 v) { return s.first < v; });
        for (auto it = begin; it != spans.end() && it->first < scope_.last; ++it) {
            if (it->last >= scope_.last) continue;
            if (e.ordered && it->first <= hi) continue;
            if (std::any_of(terms.begin(), terms.end(), [&](const Span& t) { return overlaps(*it, t); })) continue;
            const u32 span = std::max(hi, it->last) - std::min(lo, it->first) + 1;
            if (span > pattern_.window) continue;
            candidates.emplace_back(span, *it);
        }
        std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        if (candidates.size() > 4) candidates.resize(4);
        for (const auto& [distance, s] : candidates) {
            terms.push_back(s);
            if (next(element + 1, terms)) return true;
            terms.pop_back();
        }
        return false;
    }

    const Pattern& pattern_;
    const Text& text_;
    const Occurrences& found_;
    Scope scope_{};
};

}  // namespace

Result<Pattern> compile_pattern(std::string_view source, Vocabulary& vocabulary) {
    Pattern p;
    p.source = std::string(source);
    std::string_view rest = source;
    if (!rest.empty() && rest[0] == '[') {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) return fail(Error::parse(fmt::format("pattern '{}': '[' is not closed", source)));
        std::string_view tags = rest.substr(1, close - 1);
        rest.remove_prefix(close + 1);
        while (!tags.empty()) {
            const std::size_t space = std::min(tags.find(' '), tags.size());
            const std::string tag(tags.substr(0, space));
            tags.remove_prefix(std::min(space + 1, tags.size()));
            if (tag == "not") {
                p.polarity = Pattern::Polarity::denied;
            } else if (tag == "any") {
                p.polarity = Pattern::Polarity::any;
            } else if (tag == "doc") {
                p.sentences = 0;
                p.window = kWindowMax;
            } else if (tag == "sec") {
                p.section = true;
                p.window = kWindowMax;
            } else if (tag == "s2" || tag == "s3") {
                p.sentences = tag == "s2" ? 2 : 3;
                p.window = tag == "s2" ? 36 : 54;
            } else if (!tag.empty() && tag.find_first_not_of("0123456789") == std::string::npos && tag.size() < 5) {
                p.window = static_cast<u32>(std::atoi(tag.c_str()));
            } else {
                return fail(Error::parse(fmt::format("pattern '{}': unknown tag '{}' (known: not any doc sec s2 s3 or a number)", source, tag)));
            }
        }
    }
    Pattern::Element e;
    std::string current;
    const auto flush = [&]() -> Result<void> {
        if (current.find_first_not_of(' ') == std::string::npos) return fail(Error::parse(fmt::format("pattern '{}': an element is empty", source)));
        OOMLAB_TRY(id, vocabulary.intern(current));
        e.set = id;
        p.elements.push_back(e);
        current.clear();
        return {};
    };
    while (!rest.empty()) {
        const std::size_t space = std::min(rest.find(' '), rest.size());
        const std::string_view word = rest.substr(0, space);
        rest.remove_prefix(std::min(space + 1, rest.size()));
        if (word == "&" || word == ">" || word == "!" || word == "!!") {
            OOMLAB_TRY_VOID(flush());
            e = {};
            e.ordered = word == ">";
            e.role = word == "!" ? Pattern::Role::not_between : word == "!!" ? Pattern::Role::not_in_scope : Pattern::Role::need;
        } else {
            current += word;
            current += ' ';
        }
    }
    OOMLAB_TRY_VOID(flush());
    if (p.elements.front().role != Pattern::Role::need) return fail(Error::parse(fmt::format("pattern '{}' must begin with what is looked for", source)));
    return p;
}

Stance::Stance(const Text& text, const Occurrences& found, const Vocabulary& vocabulary) : sentence_has_(text.sentences.size(), false) {
    const auto spans = [&](std::string_view name) -> const std::vector<Span>& {
        static const std::vector<Span> none;
        const i64 id = vocabulary.set_id(name);
        return id < 0 ? none : found.of_set[static_cast<std::size_t>(id)];
    };
    const auto n = static_cast<u32>(text.tokens.size());
    std::vector<bool> stop(n, false), pseudo(n, false);
    for (const Span& s : spans("neg_stop")) stop[s.first] = true;
    for (const Span& s : spans("neg_pseudo"))
        for (u32 i = s.first; i <= s.last; ++i) pseudo[i] = true;
    constexpr u32 kReach = 10, kNarrowReach = 5, kListReach = 18, kBackReach = 24;
    const auto add = [&](Span cue, u32 first, u32 last, bool leads = true) {
        cues_.push_back({cue, {first, last}, leads});
        sentence_has_[text.tokens[cue.first].sentence] = true;
    };
    std::vector<bool> taken(n, false);  // a long cue ("has nothing to do with") is one cue, not several
    std::vector<Span> before(spans("neg_before"));
    std::stable_sort(before.begin(), before.end(), [](const Span& a, const Span& b) { return a.last - a.first > b.last - b.first; });
    const auto free_of = [&](const Span& s) {
        for (u32 i = s.first; i <= s.last; ++i)
            if (taken[i] || pseudo[i]) return false;
        for (u32 i = s.first; i <= s.last; ++i) taken[i] = true;
        return true;
    };
    for (const Span& s : spans("neg_sentence")) {
        if (!free_of(s)) continue;
        const Sentence& in = text.sentences[text.tokens[s.first].sentence];
        add(s, in.first, in.last - 1);
    }
    for (const Span& s : spans("neg_after")) {
        if (!free_of(s)) continue;
        u32 a = s.first;
        // Back to the start of the clause; "and the ..." starts one too.
        while (a > 0 && s.first - a < kBackReach && text.tokens[a].before < Break::clause && !(stop[a] && text.tokens[a - 1].word == "and")) --a;
        add(s, a, s.last, false);
    }
    for (const Span& s : before) {
        if (!free_of(s)) continue;
        const std::string& opening = text.tokens[s.first].word;
        const bool narrow = opening == "instead" || opening == "rather" || opening == "without" || opening == "avoid";
        u32 reach = narrow ? kNarrowReach : kReach;
        u32 b = s.last;
        const u32 end = next_break(text, s.last);
        while (b + 1 < end && b + 1 - s.last <= reach) {
            const Token& t = text.tokens[b + 1];
            if (t.word == "->" || t.word == "instead" || t.word == "as" || t.word == "bc" || t.word == "then") break;
            if (t.word == "and" && (narrow || (b + 2 < end && stop[b + 2]))) break;
            if (t.before == Break::comma && (narrow || stop[b + 1] || !goes_on_as_list(text, b + 1, end))) break;
            if (t.word == "or" || t.word == "nor") reach = kListReach;
            ++b;
        }
        add(s, s.first, b);
    }
}

bool Stance::denied(const std::vector<Span>& terms) const {
    constexpr u32 kSideBySide = 5;
    u32 covering = 0, nearest_two = kWindowMax, last_cue = 0;
    bool behind = false;
    for (const Cue& c : cues_) {
        bool own = false, covers = false;
        for (const Span& t : terms) {
            own = own || (c.cue.first >= t.first && c.cue.first <= t.last);
            covers = covers || overlaps(c.scope, t);
        }
        if (own || !covers) continue;
        behind = behind || !c.before;
        if (c.before && covering++ > 0)
            nearest_two = std::min(nearest_two, c.cue.first > last_cue ? c.cue.first - last_cue : last_cue - c.cue.first);
        if (c.before) last_cue = c.cue.first;
    }
    const bool cancelled = covering == 2 && nearest_two <= kSideBySide;
    return behind || (covering > 0 && !cancelled);
}

bool Stance::any_cue(u32 sentence) const { return sentence < sentence_has_.size() && sentence_has_[sentence]; }

std::vector<Hit> match(const Pattern& pattern, const Text& text, const Occurrences& found, const Stance& stance, std::size_t limit) {
    std::vector<Hit> out;
    Search search(pattern, text, found);
    std::vector<Span> terms;
    for (const Span& start : found.of_set[pattern.elements.front().set]) {
        if (out.size() >= limit) break;
        if (!search.complete(start, terms)) continue;
        Hit h;
        h.first = start.first;
        h.last = start.last;
        for (const Span& t : terms) {
            h.first = std::min(h.first, t.first);
            h.last = std::max(h.last, t.last);
            h.sentences.push_back(text.tokens[t.first].sentence);
        }
        h.sentence = text.tokens[start.first].sentence;
        h.denied = stance.denied(terms);
        const bool wanted = pattern.polarity == Pattern::Polarity::any || (pattern.polarity == Pattern::Polarity::denied) == h.denied;
        if (pattern.polarity == Pattern::Polarity::affirmed || wanted) out.push_back(h);
    }
    return out;
}

}  // namespace oomlab::grader
