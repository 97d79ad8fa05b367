#include "grader/concepts/prose.hpp"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace oomlab::grader {
namespace {

enum class Kind : unsigned char { other, determiner, preposition, conjunction, be, have, modal, subject, object, infinitive };

Kind kind_of(std::string_view w) {
    static const std::unordered_map<std::string_view, Kind> map = [] {
        std::unordered_map<std::string_view, Kind> m;
        for (const char* s : {"the", "a", "an", "my", "your", "our", "their", "its", "every"}) m[s] = Kind::determiner;
        for (const char* s : {"of", "from", "into", "with", "without", "between", "at", "for", "by", "during", "against", "than"}) m[s] = Kind::preposition;
        for (const char* s : {"and", "or", "but", "because", "if", "although", "whereas", "nor"}) m[s] = Kind::conjunction;
        for (const char* s : {"is", "are", "was", "were"}) m[s] = Kind::be;
        for (const char* s : {"has", "have", "had"}) m[s] = Kind::have;
        for (const char* s : {"can", "could", "will", "would", "should", "may", "might", "must"}) m[s] = Kind::modal;
        for (const char* s : {"i", "we", "they", "he", "she"}) m[s] = Kind::subject;
        for (const char* s : {"it", "you", "them", "us"}) m[s] = Kind::object;
        m["to"] = Kind::infinitive;
        return m;
    }();
    const auto it = map.find(w);
    return it == map.end() ? Kind::other : it->second;
}

bool is_verb(Kind k) { return k == Kind::be || k == Kind::have || k == Kind::modal; }

// After `a`, can `b` stand in a sentence? Only the clear cases count as impossible. `parted`: a comma
// or the sentence's end stands between.
bool impossible(Kind a, Kind b, bool parted, std::string_view first, std::string_view second) {
    switch (a) {
        case Kind::determiner: return parted || b != Kind::other;
        case Kind::preposition: return !parted && (is_verb(b) || b == Kind::conjunction || b == Kind::subject || (b == Kind::preposition && first != "than" && second != "at" && second != "between" && second != "during") || b == Kind::infinitive);
        case Kind::conjunction: return !parted && (b == Kind::conjunction && second != "if" && second != "because" && second != "although" && second != "but" && first != second);
        case Kind::be: return !parted && (b == Kind::be || b == Kind::have || b == Kind::modal || b == Kind::subject);
        case Kind::have: return !parted && (is_verb(b) || b == Kind::subject || b == Kind::conjunction);
        case Kind::modal: return !parted && (b == Kind::be || b == Kind::determiner || b == Kind::preposition || b == Kind::modal || b == Kind::infinitive || b == Kind::conjunction);
        case Kind::subject: return !parted && (b == Kind::determiner || b == Kind::preposition || b == Kind::subject || b == Kind::object || b == Kind::infinitive);
        case Kind::object: return !parted && (b == Kind::subject && first == "it");
        case Kind::infinitive: return !parted && (is_verb(b) || b == Kind::conjunction || b == Kind::preposition || b == Kind::subject || b == Kind::infinitive) && second != "have";
        case Kind::other: return false;
    }
    return false;
}

// Brackets that close what was not opened.
void judge_brackets(const Text& text, double& bad, double& evidence) {
    int depth = 0;
    char before = ' ';
    for (const char c : text.original) {
        if (c == '(') ++depth, evidence += 1;
        if (c == ')') {
            if (depth > 0)
                --depth;
            else if (before < '0' || before > '9')  // "1)" is an item, not a bracket
                bad += 1;
        }
        before = c;
    }
    bad += depth;
}

// Sentences that begin small although others begin large, and large beginnings in the middle of
// sentences: a writer does one or the other, thrown words do both. Returns the lesser of the two.
u32 mixed_beginnings(const Text& text) {
    u32 small = 0, inside = 0;
    for (std::size_t i = 1; i < text.sentences.size(); ++i) {
        const u32 first = text.sentences[i].first;
        const Token& t = text.tokens[first];
        const u32 from = text.tokens[first - 1].end;
        const bool new_line = std::find(text.original.begin() + static_cast<std::ptrdiff_t>(from), text.original.begin() + static_cast<std::ptrdiff_t>(t.begin), '\n') !=
                              text.original.begin() + static_cast<std::ptrdiff_t>(t.begin);
        if (!t.literal && !t.symbol && !t.capital && !new_line) ++small;
    }
    for (const Sentence& s : text.sentences)
        for (u32 t = s.first + 1; t < s.last; ++t) {
            const Token& token = text.tokens[t];
            const bool plain = token.capital && !token.literal && token.word.size() >= 2 && token.before < Break::clause && token.begin + 1 < text.original.size() &&
                               std::islower(static_cast<unsigned char>(text.original[token.begin + 1])) != 0;
            if (plain && token.begin != text.tokens[t - 1].begin) ++inside;
        }
    return std::min(small, inside);
}

std::vector<u32> count_in_sentences(std::string_view set, const Text& text, const Occurrences& found, const Vocabulary& vocabulary) {
    std::vector<u32> out(text.sentences.size(), 0);
    const i64 id = vocabulary.set_id(set);
    if (id < 0) return out;
    i64 last = -1;
    for (const Span& s : found.of_set[static_cast<std::size_t>(id)]) {
        if (static_cast<i64>(s.first) <= last) continue;
        last = s.last;
        ++out[text.tokens[s.first].sentence];
    }
    return out;
}

}  // namespace

bool is_function_word(std::string_view word) {
    if (kind_of(word) != Kind::other) return true;
    for (const char* s : {"to", "in", "on", "that", "this", "which", "when", "then", "not", "as", "no", "there", "what", "how", "who", "where", "these", "those", "up", "out", "off", "only"})
        if (word == s) return true;
    return false;
}

Prose judge_prose(const Text& text, const Occurrences& found, const Vocabulary& vocabulary) {
    Prose out;
    const std::size_t n = text.sentences.size();
    out.list.assign(n, false);
    out.empty.assign(n, false);
    const std::vector<u32> fluff = count_in_sentences("fluff", text, found, vocabulary);
    const std::vector<u32> hedges = count_in_sentences("hedge", text, found, vocabulary);
    out.hedged.assign(n, false);
    std::size_t hedged = 0;
    for (std::size_t i = 0; i < n; ++i) {
        out.hedged[i] = hedges[i] > 0;
        hedged += hedges[i] > 0 ? 1 : 0;
    }
    out.hedged_share = n == 0 ? 0 : static_cast<double>(hedged) / static_cast<double>(n);
    std::size_t list_tokens = 0, empties = 0;
    double bad = 0, evidence = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const Sentence& s = text.sentences[i];
        std::vector<u32> items;
        u32 length = 0, function_words = 0, relations = 0;
        for (u32 t = s.first; t < s.last; ++t) {
            const Token& token = text.tokens[t];
            if (t > s.first && token.before == Break::comma) {
                items.push_back(length);
                length = 0;
            }
            ++length;
            function_words += is_function_word(token.word) ? 1 : 0;
            relations += token.symbol ? 1 : 0;
        }
        items.push_back(length);
        std::vector<u32> sorted = items;
        std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
        const u32 median = sorted[sorted.size() / 2];
        const u32 tokens = s.last - s.first;
        if (items.size() >= 5 && median <= 3 && relations * 6 < items.size() && function_words * 6 < tokens) {
            out.list[i] = true;
            out.list_items += static_cast<u32>(items.size());
            list_tokens += tokens;
        }
        if (fluff[i] >= 2 || (fluff[i] == 1 && (tokens <= 8 || items.size() >= 4))) {
            out.empty[i] = true;
            ++empties;
        }
        for (u32 t = s.first; t < s.last; ++t) {
            const Token& here = text.tokens[t];
            const Kind a = kind_of(here.word);
            if (a == Kind::other) continue;
            evidence += 1;
            const bool at_end = t + 1 == s.last;
            const Token* next = at_end ? nullptr : &text.tokens[t + 1];
            if (next != nullptr && next->begin == here.begin) continue;  // two words of one contraction
            const bool parted = at_end || next->before >= Break::comma;
            if (here.capital && t > s.first && here.before == Break::none && here.word != "i") bad += 1;
            if (at_end && (a == Kind::conjunction || a == Kind::subject))
                bad += 1;
            else if (impossible(a, next == nullptr ? Kind::other : kind_of(next->word), parted, here.word, next == nullptr ? std::string_view() : std::string_view(next->word)))
                bad += 1;
        }
    }
    judge_brackets(text, bad, evidence);
    out.mixed = mixed_beginnings(text);
    out.sentences = static_cast<u32>(n);
    out.list_share = text.tokens.empty() ? 0 : static_cast<double>(list_tokens) / static_cast<double>(text.tokens.size());
    out.empty_share = n == 0 ? 0 : static_cast<double>(empties) / static_cast<double>(n);
    out.order_evidence = static_cast<u32>(evidence);
    out.disorder = evidence == 0 ? 0 : bad / evidence;
    return out;
}

}  // namespace oomlab::grader
