// Terms, sets of synonyms and patterns, looked for in a prepared text, and whether the text affirms
// or denies what was found.
//
// A term is words in order: "run out", "(kernel|linux) oom killer", "fragment*", "evict _ block"
// (`_`: up to two words of any kind). "(a|b)?" may be missing, "(is |are )*" is any number of such
// fillers, "(chunk|slice)*" is "chunk*" or "slice*". Words match in every inflection; articles between
// words do not count. A set is a name for terms and other sets: "@host". A pattern relates sets:
//
//   "@at_load & @does_not_fit"            both within one sentence, at most 16 words apart in all
//   "[24] @capture > @restart"            in this order, 24 words
//   "[s2] @a & @b"                        within two neighbouring sentences; "[sec]" section, "[doc]" text
//   "@a & @b ! @c"                        and no @c between them;  "!! @c": no @c in the whole scope
//   "[not] @dmesg"                        only when denied;  "[any] ...": affirmed or denied
//
// Not thread safe while being built; const use is.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grader/concepts/text.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::grader {

struct Span {
    u32 first = 0;  // tokens, both included
    u32 last = 0;
};

// Where each set occurs in a text.
struct Occurrences {
    std::vector<std::vector<Span>> of_set;
    std::vector<bool> is_term;  // token belongs to some term
};

class Vocabulary {
  public:
    // REQUIRES: finish() not called. Redefinition is an error.
    Result<void> define(std::string_view name, const std::vector<std::string>& terms);
    // "@set", a term, or several of both parted by " | ". Returns the id of the set.
    Result<u32> intern(std::string_view expression);
    // Resolves names. On failure: which set names what unknown one, and the nearest known name.
    Result<void> finish();
    // Words that are right as they stand (never "corrected").
    void know_words(std::string_view list);

    // Spelling: one letter from five letters on, two from nine; never flags, figures or known words.
    void correct(Text& text) const;
    Occurrences find(const Text& text) const;
    // The id of a defined set, or -1.
    i64 set_id(std::string_view name) const;
    std::vector<std::string> set_names() const;

  private:
    struct Slot {
        bool prefix = false;
        std::string text;
    };
    struct Node {
        enum class Times : unsigned char { once, optional, any, gap } times = Times::once;
        std::vector<std::vector<Slot>> choices;
    };
    struct Sequence {
        std::vector<Node> nodes;
        std::vector<u32> sets;
    };
    Result<void> add_term(u32 set, std::string_view term);
    static Result<std::vector<Node>> parse_term(std::string_view term);
    static bool match_words(const Text& text, const std::vector<Slot>& words, bool first, u32 gap, u32& at, u32& last);
    static bool match_nodes(const Text& text, const Sequence& sequence, std::size_t node, u32 at, u32 gap, int repeats, u32& last);

    std::map<std::string, u32, std::less<>> names_;
    std::vector<std::vector<std::string>> refers_;  // set -> names of sets it includes
    std::vector<std::vector<u32>> sequences_of_;
    std::map<std::string, u32, std::less<>> sequence_ids_;
    std::vector<Sequence> sequences_;
    std::unordered_map<std::string, std::vector<u32>> by_stem_;
    std::unordered_map<std::string, std::vector<u32>> by_prefix_;  // by the first three letters
    std::unordered_set<std::string> known_;
    std::vector<std::string> spelled_;  // full words of the vocabulary, for correction
    bool finished_ = false;
};

struct Pattern {
    enum class Role : unsigned char { need, not_between, not_in_scope };
    enum class Polarity : unsigned char { affirmed, denied, any };
    struct Element {
        u32 set = 0;
        Role role = Role::need;
        bool ordered = false;  // stands behind everything matched so far
    };
    std::string source;
    std::vector<Element> elements;
    Polarity polarity = Polarity::affirmed;
    u32 window = 16;
    u32 sentences = 1;  // 0: the whole text
    bool section = false;
};

Result<Pattern> compile_pattern(std::string_view source, Vocabulary& vocabulary);

// What the text denies: every cue ("not", "is a myth") with the tokens it covers.
class Stance {
  public:
    // Uses the sets neg_before, neg_after, neg_pseudo, neg_sentence and neg_stop when defined.
    Stance(const Text& text, const Occurrences& found, const Vocabulary& vocabulary);
    // True when a cue outside the matched terms covers them. Two cues side by side ("not that there is
    // no") cancel each other.
    bool denied(const std::vector<Span>& terms) const;
    bool any_cue(u32 sentence) const;

  private:
    struct Cue {
        Span cue;
        Span scope;
        bool before = true;  // stands in front of what it denies
    };
    std::vector<Cue> cues_;
    std::vector<bool> sentence_has_;
};

struct Hit {
    u32 first = 0;
    u32 last = 0;
    u32 sentence = 0;                // of the first term
    std::vector<u32> sentences;      // of all terms
    bool denied = false;
};

// At most `limit` hits, in text order.
std::vector<Hit> match(const Pattern& pattern, const Text& text, const Occurrences& found, const Stance& stance,
                       std::size_t limit = 24);

// The known name nearest to a misspelt one, for error messages; empty when nothing is near.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace oomlab::grader
