#include "grader/concepts/prose.hpp"

#include <algorithm>
#include <unordered_map>

namespace oomlab::grader {
namespace {

enum class Kind : unsigned char { other, determiner, preposition, conjunction, auxiliary, pronoun };

Kind kind_of(std::string_view w) {
    static const std::unordered_map<std::string_view, Kind> map = [] {
        std::unordered_map<std::string_view, Kind> m;
        for (const char* s : {"the", "a", "an", "my", "your", "our", "their", "its", "every", "each"}) m[s] = Kind::determiner;
        for (const char* s : {"of", "from", "into", "with", "without", "between", "at", "for", "by", "during", "against", "than"})
            m[s] = Kind::preposition;
        for (const char* s : {"and", "or", "but", "because", "if", "although", "whereas", "so", "nor"}) m[s] = Kind::conjunction;
        for (const char* s : {"is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "can", "could", "will",
                              "would", "should", "may", "might", "must"})
            m[s] = Kind::auxiliary;
        for (const char* s : {"it", "they", "we", "i", "you", "he", "she", "them", "us"}) m[s] = Kind::pronoun;
        return m;
    }();
    const auto it = map.find(w);
    return it == map.end() ? Kind::other : it->second;
}

// After `a`, can `b` stand in a sentence? Only the clear cases count as impossible.
bool impossible(Kind a, Kind b, bool parted, std::string_view first, std::string_view second) {
    switch (a) {
        case Kind::determiner: return parted || b != Kind::other;
        case Kind::preposition:
            if (first == "than" || first == "for" || first == "by" || first == "at" || first == "with")
                return b == Kind::conjunction || (b == Kind::auxiliary && first != "than");
            return b == Kind::auxiliary || b == Kind::conjunction || (b == Kind::preposition && second != "at" && second != "between" && second != "during");
        case Kind::conjunction: return !parted && (b == Kind::conjunction && second != "if" && second != "because" && second != "so" && second != "although" && second != "but");
        case Kind::auxiliary:
            return !parted && (b == Kind::auxiliary && first == second);
        case Kind::pronoun: return !parted && (b == Kind::determiner && second != "a" && second != "the" && second != "every" && second != "each" && second != "its" && second != "our" && second != "my");
        case Kind::other: return false;
    }
    return false;
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
    std::size_t list_tokens = 0, empties = 0, determiners = 0;
    double bad = 0;
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
        if (fluff[i] >= 2 || (fluff[i] == 1 && (tokens <= 10 || items.size() >= 4))) {
            out.empty[i] = true;
            ++empties;
        }
        for (u32 t = s.first; t < s.last; ++t) {
            const Kind a = kind_of(text.tokens[t].word);
            if (a == Kind::other) continue;
            const bool at_end = t + 1 == s.last;
            const bool parted = at_end || text.tokens[t + 1].before >= Break::comma;
            const Kind b = at_end ? Kind::other : kind_of(text.tokens[t + 1].word);
            ++determiners;
            if (text.tokens[t].capital && t > s.first && text.tokens[t].before == Break::none && text.tokens[t].word != "i" && text.tokens[t].word.size() > 1) bad += 1;
            if (at_end && (a == Kind::conjunction || a == Kind::determiner)) bad += 1;
            else if (impossible(a, b, parted, text.tokens[t].word, at_end ? std::string_view() : std::string_view(text.tokens[t + 1].word))) bad += 1;
        }
    }
    out.list_share = text.tokens.empty() ? 0 : static_cast<double>(list_tokens) / static_cast<double>(text.tokens.size());
    out.empty_share = n == 0 ? 0 : static_cast<double>(empties) / static_cast<double>(n);
    out.order_evidence = static_cast<u32>(determiners);
    out.disorder = determiners == 0 ? 0 : bad / static_cast<double>(determiners);
    return out;
}

}  // namespace oomlab::grader
