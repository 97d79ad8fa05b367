#include "grader/concepts/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

namespace oomlab::grader {
namespace {

bool is_word_char(unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c >= 0x80; }
bool is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct Folded {
    std::string_view from;
    std::string_view to;
};
// Typography that carries meaning, as plain characters of at most the same length in bytes.
constexpr std::array<Folded, 30> kFold = {{
    {"\xE2\x80\x99", "'"},  {"\xE2\x80\x98", "'"},   {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""},
    {"\xE2\x80\x93", "-"},  {"\xE2\x80\x94", " - "}, {"\xE2\x80\x91", "-"},  {"\xE2\x80\xA6", "..."},
    {"\xE2\x86\x92", "->"}, {"\xE2\x87\x92", "->"},  {"\xE2\x86\x91", " up"}, {"\xE2\x86\x93", "dn "},
    {"\xE2\x86\x97", " up"}, {"\xE2\x86\x98", "dn "}, {"\xE2\x89\xA5", ">="}, {"\xE2\x89\xA4", "<="},
    {"\xE2\x89\x88", "~"},  {"\xE2\x80\xA2", "\n* "}, {"\xC3\x97", "x"},     {"\xC2\xA0", " "},
    {"\xE2\x88\x92", "  -"},  {"\xE2\x88\x86", " "},   {"\xE2\x9C\x93", " "},  {"\xE2\x80\x8B", " "},
    {"\xE2\x89\xA0", "!="}, {"\xC3\xA9", "e"},       {"\xC3\xAF", "i"},      {"\xC2\xAB", "\""},
    {"\xC2\xBB", "\""},     {"\xE2\x87\x91", " up"},
}};

// Same length or shorter in place, padded with spaces, so that offsets stay those of the original.
std::string fold(std::string_view in) {
    std::string out(in);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (static_cast<unsigned char>(out[i]) < 0x80) continue;
        for (const Folded& f : kFold) {
            if (out.compare(i, f.from.size(), f.from) != 0) continue;
            for (std::size_t k = 0; k < f.from.size(); ++k) out[i + k] = k < f.to.size() ? f.to[k] : ' ';
            break;
        }
    }
    return out;
}

const std::unordered_map<std::string, std::vector<std::string>>& contractions() {
    static const std::unordered_map<std::string, std::vector<std::string>> map = {
        {"isn't", {"is", "not"}},       {"isnt", {"is", "not"}},       {"aren't", {"are", "not"}},
        {"arent", {"are", "not"}},      {"wasn't", {"was", "not"}},    {"wasnt", {"was", "not"}},
        {"weren't", {"were", "not"}},   {"don't", {"do", "not"}},      {"dont", {"do", "not"}},
        {"doesn't", {"does", "not"}},   {"doesnt", {"does", "not"}},   {"didn't", {"did", "not"}},
        {"didnt", {"did", "not"}},      {"can't", {"can", "not"}},     {"cant", {"can", "not"}},
        {"cannot", {"can", "not"}},     {"couldn't", {"could", "not"}}, {"couldnt", {"could", "not"}},
        {"won't", {"will", "not"}},     {"wont", {"will", "not"}},     {"wouldn't", {"would", "not"}},
        {"wouldnt", {"would", "not"}},  {"shouldn't", {"should", "not"}}, {"shouldnt", {"should", "not"}},
        {"haven't", {"have", "not"}},   {"hasn't", {"has", "not"}},    {"hadn't", {"had", "not"}},
        {"needn't", {"need", "not"}},   {"mustn't", {"must", "not"}},  {"ain't", {"is", "not"}},
        {"it's", {"it", "is"}},         {"that's", {"that", "is"}},    {"thats", {"that", "is"}},
        {"there's", {"there", "is"}},   {"theres", {"there", "is"}},   {"what's", {"what", "is"}},
        {"i'd", {"i", "would"}},        {"i'm", {"i", "am"}},          {"i've", {"i", "have"}},
        {"i'll", {"i", "will"}},        {"we'd", {"we", "would"}},     {"we're", {"we", "are"}},
        {"we've", {"we", "have"}},      {"we'll", {"we", "will"}},     {"you're", {"you", "are"}},
        {"you'd", {"you", "would"}},    {"you've", {"you", "have"}},   {"you'll", {"you", "will"}},
        {"they're", {"they", "are"}},   {"they'd", {"they", "would"}}, {"they've", {"they", "have"}},
        {"it'll", {"it", "will"}},      {"he's", {"he", "is"}},        {"who's", {"who", "is"}},
        {"let's", {"let", "us"}},       {"nobody's", {"nobody", "is"}},
    };
    return map;
}

// Never the end of a sentence; `etc` and the like are, when a capital follows.
bool always_abbreviation(std::string_view word) { return word == "e.g" || word == "i.e" || word == "vs" || word == "cf" || word == "incl"; }
bool abbreviation(std::string_view word) {
    constexpr std::array<std::string_view, 6> kAbbreviations = {"etc", "approx", "ca", "fig", "resp", "max"};
    return std::find(kAbbreviations.begin(), kAbbreviations.end(), word) != kAbbreviations.end();
}

class Tokenizer {
  public:
    explicit Tokenizer(std::string_view original) {
        text_.original = std::string(original.substr(0, kMaxTextBytes));
        text_.truncated = original.size() > kMaxTextBytes;
        in_ = fold(text_.original);
    }

    Text run() {
        line_marks();
        while (at_ < in_.size()) {
            if (text_.tokens.size() >= kMaxTokens) {
                text_.truncated = true;
                break;
            }
            step();
        }
        end_sentence(false);
        return std::move(text_);
    }

  private:
    void part(Break b) { pending_ = std::max(pending_, b); }

    void step() {
        const char c = in_[at_];
        if (c == '\n') return newline();
        if (is_space(static_cast<unsigned char>(c))) {
            ++at_;
            return;
        }
        if (c == '-' && in_.compare(at_, 2, "--") == 0 && at_ + 2 < in_.size() &&
            std::isalpha(static_cast<unsigned char>(in_[at_ + 2])) != 0) {
            return flag();
        }
        if (is_word_char(static_cast<unsigned char>(c)) || starts_fraction() || starts_negative()) return word();
        punctuation();
    }

    bool digit_at(std::size_t p) const { return p < in_.size() && std::isdigit(static_cast<unsigned char>(in_[p])) != 0; }

    // "-0.04" and "-20%" after a space are figures with a sign.
    bool starts_negative() const {
        return in_[at_] == '-' && at_ > 0 && (is_space(static_cast<unsigned char>(in_[at_ - 1])) || in_[at_ - 1] == '(') &&
               (digit_at(at_ + 1) || (at_ + 1 < in_.size() && in_[at_ + 1] == '.' && digit_at(at_ + 2)));
    }

    // ".05" after a space is a figure, not the end of a sentence.
    bool starts_fraction() const {
        return in_[at_] == '.' && digit_at(at_ + 1) && (at_ == 0 || is_space(static_cast<unsigned char>(in_[at_ - 1])) || in_[at_ - 1] == '-');
    }

    void newline() {
        std::size_t next = at_;
        int lines = 0;
        while (next < in_.size() && is_space(static_cast<unsigned char>(in_[next]))) lines += in_[next++] == '\n';
        const std::size_t line_begin = in_.rfind('\n', at_ == 0 ? 0 : at_ - 1);
        const std::size_t width = at_ - (line_begin == std::string::npos ? 0 : line_begin);
        const bool wrapped = lines == 1 && width > 60 && next < in_.size() &&
                             std::islower(static_cast<unsigned char>(in_[next])) != 0;
        if (!wrapped) end_sentence(false);
        at_ = next;
        line_marks();
    }

    // A list's own marks say nothing.
    void line_marks() {
        const auto spaced = [&](char mark) { return in_[at_] == mark && at_ + 1 < in_.size() && in_[at_ + 1] == ' '; };
        while (at_ < in_.size() && (in_[at_] == '*' || in_[at_] == '#' || spaced('>') || spaced('-') || (in_[at_] == ' ' && at_ > 0))) {
            end_sentence(false);
            ++at_;
        }
        numbered_item();
    }

    // "1." or "2)" or "(3)" at the start of a line.
    void numbered_item() {
        std::size_t p = at_;
        while (p < in_.size() && std::isdigit(static_cast<unsigned char>(in_[p])) != 0 && p - at_ < 3) ++p;
        if (p > at_ && p + 1 < in_.size() && (in_[p] == '.' || in_[p] == ')') && is_space(static_cast<unsigned char>(in_[p + 1]))) {
            end_sentence(false);
            at_ = p + 1;
        }
    }

    void flag() {
        const std::size_t begin = at_;
        at_ += 2;
        while (at_ < in_.size() && (is_word_char(static_cast<unsigned char>(in_[at_])) || in_[at_] == '-')) ++at_;
        std::string w = in_.substr(begin + 2, at_ - begin - 2);
        std::replace(w.begin(), w.end(), '-', '_');
        add(std::move(w), begin, at_, true, false);
    }

    void word() {
        const std::size_t begin = at_;
        bool has_digit = false, has_alpha = false, joined = false;
        while (at_ < in_.size()) {
            const auto c = static_cast<unsigned char>(in_[at_]);
            const bool more = at_ + 1 < in_.size() && is_word_char(static_cast<unsigned char>(in_[at_ + 1]));
            if (is_word_char(c)) {
                has_digit = has_digit || std::isdigit(c) != 0;
                has_alpha = has_alpha || std::isalpha(c) != 0 || c >= 0x80;
                joined = joined || c == '_';
            } else if (c == '-' && at_ == begin) {
            } else if (c == '\'' && more) {
            } else if (c == '.' && more) {
                // 0.94, memory.events, torch.cuda.x; but "end.Next" is rare enough to ignore.
                joined = true;
            } else if (c == ',' && more && has_digit && !has_alpha &&
                       std::isdigit(static_cast<unsigned char>(in_[at_ + 1])) != 0 && at_ + 3 < in_.size() &&
                       std::isdigit(static_cast<unsigned char>(in_[at_ + 3])) != 0) {
            } else if (c == '%' && has_digit) {
                ++at_;
                break;
            } else {
                break;
            }
            ++at_;
        }
        std::string w = in_.substr(begin, at_ - begin);
        const bool capital = std::isupper(static_cast<unsigned char>(w[0])) != 0;
        std::transform(w.begin(), w.end(), w.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        w.erase(std::remove(w.begin(), w.end(), ','), w.end());
        for (const std::string_view prefix : {"torch.cuda.", "torch."})
            if (w.size() > prefix.size() && w.compare(0, prefix.size(), prefix) == 0) w.erase(0, prefix.size());
        const auto& map = contractions();
        if (const auto it = map.find(w); it != map.end()) {
            for (const std::string& p : it->second) add(p, begin, at_, false, capital);
            return;
        }
        if (w.size() > 2 && w.compare(w.size() - 2, 2, "'s") == 0) w.resize(w.size() - 2);
        w.erase(std::remove(w.begin(), w.end(), '\''), w.end());
        if (!w.empty()) add(std::move(w), begin, at_, has_digit || joined, capital);
    }

    void punctuation() {
        const std::size_t begin = at_;
        const char c = in_[at_];
        const std::string_view rest = std::string_view(in_).substr(at_);
        for (const std::string_view s : {"->", "=>", "!=", ">=", "<="}) {
            if (rest.substr(0, 2) == s) {
                at_ += 2;
                add(s == "=>" ? "->" : std::string(s), begin, at_, true, false, true);
                return;
            }
        }
        ++at_;
        switch (c) {
            case '=': case '+': case '<': case '>': case '~': case '|':
                add(std::string(1, c), begin, at_, true, false, true);
                return;
            case '.': {
                const bool ends = at_ >= in_.size() || is_space(static_cast<unsigned char>(in_[at_])) || in_[at_] == '"' || in_[at_] == ')' || in_[at_] == '.';
                const std::string_view before = text_.tokens.empty() ? std::string_view() : std::string_view(text_.tokens.back().word);
                const bool capital_next = at_ + 1 < in_.size() && std::isupper(static_cast<unsigned char>(in_[at_ + 1])) != 0;
                const bool abbreviated = at_ < in_.size() && (always_abbreviation(before) || (abbreviation(before) && !capital_next));
                if (rest.substr(0, 3) == "...") {
                    while (at_ < in_.size() && in_[at_] == '.') ++at_;
                    part(Break::comma);
                } else if (ends && !abbreviated) {
                    end_sentence(false);
                }
                return;
            }
            case '!': end_sentence(false); return;
            case '?': end_sentence(true); return;
            case '(':
                if (at_ < in_.size() && in_[at_] == ')') {  // memory_summary()
                    ++at_;
                    return;
                }
                part(Break::clause);
                return;
            case ';': case ':': case ')': part(Break::clause); return;
            case ',': case '"': part(Break::comma); return;
            case '-':
                if (begin > 0 && is_space(static_cast<unsigned char>(in_[begin - 1])) && at_ < in_.size() && is_space(static_cast<unsigned char>(in_[at_])))
                    part(Break::comma);
                return;
            default: return;
        }
    }

    void add(std::string w, std::size_t begin, std::size_t end, bool literal, bool capital, bool symbol = false) {
        if (w == "dn") w = "down";
        Token t;
        if (w == "but" || w == "however" || w == "although" || w == "though" || w == "whereas" || w == "unless" ||
            w == "because" || w == "while" || w == "since")
            part(Break::clause);
        t.stem = literal ? w : stem_of(w);
        t.word = std::move(w);
        t.begin = static_cast<u32>(begin);
        t.end = static_cast<u32>(end);
        t.before = text_.tokens.size() == sentence_first_ ? Break::sentence : pending_;
        t.sentence = static_cast<u32>(text_.sentences.size());
        t.symbol = symbol;
        t.literal = literal;
        t.capital = capital;
        pending_ = Break::none;
        text_.tokens.push_back(std::move(t));
    }

    void end_sentence(bool question) {
        pending_ = Break::none;
        const auto last = static_cast<u32>(text_.tokens.size());
        if (last == sentence_first_) return;
        text_.sentences.push_back({static_cast<u32>(sentence_first_), last, question});
        sentence_first_ = last;
    }

    Text text_;
    std::string in_;
    std::size_t at_ = 0;
    std::size_t sentence_first_ = 0;
    Break pending_ = Break::none;
};

bool has_vowel(std::string_view s) { return s.find_first_of("aeiouy") != std::string_view::npos; }

}  // namespace

Text prepare_text(std::string_view original) { return Tokenizer(original).run(); }

std::string stem_of(std::string_view word) {
    std::string s(word);
    const auto ends = [&](std::string_view e) {
        return s.size() > e.size() && s.compare(s.size() - e.size(), e.size(), e) == 0;
    };
    if (s.size() < 4) return s;
    bool verb = false;
    if (ends("ies") && s.size() > 4) {
        s.replace(s.size() - 3, 3, "y");
    } else if (ends("sses") || ends("xes") || ends("ches") || ends("shes")) {
        s.resize(s.size() - 2);
    } else if (ends("s") && !ends("ss") && !ends("us") && !ends("is")) {
        s.resize(s.size() - 1);
    }
    if (ends("ing") && s.size() > 5 && has_vowel(s.substr(0, s.size() - 3))) {
        s.resize(s.size() - 3);
        verb = true;
    } else if (ends("ied") && s.size() > 4) {
        s.replace(s.size() - 3, 3, "y");
    } else if (ends("ed") && s.size() > 4 && !ends("eed") && has_vowel(s.substr(0, s.size() - 2))) {
        s.resize(s.size() - 2);
        verb = true;
    }
    const std::size_t n = s.size();
    if (verb && n > 3 && s[n - 1] == s[n - 2] && s[n - 1] != 'l' && s[n - 1] != 's' && s[n - 1] != 'z') s.resize(n - 1);
    if (s.size() > 3 && s.back() == 'e') s.resize(s.size() - 1);
    return s;
}

bool within_edits(std::string_view a, std::string_view b, int limit) {
    const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
    if (n - m > limit || m - n > limit || n > 40 || m > 40) return false;
    std::array<std::array<int, 42>, 42> d{};
    for (int i = 0; i <= n; ++i) {
        int best = limit + 1;
        for (int j = 0; j <= m; ++j) {
            const auto u = static_cast<std::size_t>(i), v = static_cast<std::size_t>(j);
            if (i == 0 || j == 0) {
                d[u][v] = i + j;
            } else {
                const bool same = a[u - 1] == b[v - 1];
                d[u][v] = std::min({d[u - 1][v] + 1, d[u][v - 1] + 1, d[u - 1][v - 1] + (same ? 0 : 1)});
                if (i > 1 && j > 1 && a[u - 1] == b[v - 2] && a[u - 2] == b[v - 1])
                    d[u][v] = std::min(d[u][v], d[u - 2][v - 2] + 1);
            }
            best = std::min(best, d[u][v]);
        }
        if (best > limit) return false;
    }
    return d[static_cast<std::size_t>(n)][static_cast<std::size_t>(m)] <= limit;
}

std::string printable(std::string_view text, std::size_t limit) {
    std::string out;
    for (const char c : text) {
        if (out.size() >= limit) {
            while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) out.pop_back();
            if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0U) out.pop_back();
            return out + "...";
        }
        const auto u = static_cast<unsigned char>(c);
        if (u == '\n' || u == '\t' || u == '\r') {
            if (!out.empty() && out.back() != ' ') out += ' ';
        } else if (u >= 0x20 && u != 0x7F) {
            out += c;
        }
    }
    return out;
}

std::string Text::quote(u32 sentence, std::size_t limit) const {
    if (sentence >= sentences.size()) return {};
    const Sentence& s = sentences[sentence];
    u32 begin = tokens[s.first].begin;
    u32 end = tokens[s.last - 1].end;
    const auto inside = [&](u32 at) { return at < original.size() && (static_cast<unsigned char>(original[at]) & 0xC0U) == 0x80U; };
    while (begin > 0 && inside(begin)) --begin;
    while (inside(end)) ++end;
    return printable(std::string_view(original).substr(begin, end - begin), limit);
}

u32 Text::line_of(u32 token) const {
    if (token >= tokens.size()) return 0;
    const auto stop = original.begin() + static_cast<std::ptrdiff_t>(tokens[token].begin);
    return 1 + static_cast<u32>(std::count(original.begin(), stop, '\n'));
}

}  // namespace oomlab::grader
