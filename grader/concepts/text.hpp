// Free text made ready for marking: tokens, sentences, spelling, and what a negation covers.
//
// It understands nothing. It folds case, expands contractions, keeps flags and figures as one token
// each, splits into sentences and clauses, corrects a letter or two against a given vocabulary, and
// works out which tokens stand under a "not". Positions always lead back to the learner's own words.
// Pure functions of their input; safe to use from several threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"

namespace oomlab::grader {

// How strongly a token is parted from the one before it.
enum class Break : unsigned char { none, comma, clause, sentence };

struct Token {
    std::string word;   // lower case, spelling corrected
    std::string stem;   // without an inflection
    u32 begin = 0;      // bytes in the original text
    u32 end = 0;
    u32 sentence = 0;
    u32 section = 0;    // runbooks: the heading it stands under
    Break before = Break::none;
    bool symbol = false;   // -> = + < > and the like
    bool literal = false;  // a flag, figure or file name: never spell-corrected
    bool capital = false;
};

struct Sentence {
    u32 first = 0;  // token range [first, last)
    u32 last = 0;
    bool question = false;
};

struct Text {
    std::string original;
    std::vector<Token> tokens;
    std::vector<Sentence> sentences;
    bool truncated = false;  // only the first kMaxTokens are looked at

    // The learner's own words of a sentence, control characters removed, at most `limit` bytes.
    std::string quote(u32 sentence, std::size_t limit = 140) const;
    // 1-based line of a token in the original.
    u32 line_of(u32 token) const;
};

inline constexpr std::size_t kMaxTextBytes = 256 * 1024;
inline constexpr std::size_t kMaxTokens = 12000;

// Tokens and sentences of `original`; anything behind kMaxTextBytes or kMaxTokens is left out and
// `truncated` says so.
Text prepare_text(std::string_view original);

// The inflection-free form that words are compared by ("caching" and "caches" are one).
std::string stem_of(std::string_view word);

// True when `a` becomes `b` by at most `limit` single-letter edits (swapped neighbours count one).
bool within_edits(std::string_view a, std::string_view b, int limit);

// Control characters out, so that text from a file may go to a terminal.
std::string printable(std::string_view text, std::size_t limit);

}  // namespace oomlab::grader
