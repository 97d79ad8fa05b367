// What must hold for any text, tried on the strong answers of our corpus: gaming does not pay.
#include <doctest/doctest.h>

#include <cctype>
#include <sstream>

#include "kernels/base/prng.hpp"
#include "tests/grader/labelled.hpp"

using namespace oomlab;
using namespace oomlab::grader;
using test::Labelled;
using test::rubric;

namespace {

std::vector<Labelled> strong_answers() {
    std::vector<Labelled> out;
    for (const char* name : {"answers_a", "answers_b"})
        for (Labelled& a : test::read_labelled(std::string(OOMLAB_SOURCE_DIR "/tests/grader/corpus/") + name + ".jsonl"))
            if (a.kind == "strong") out.push_back(std::move(a));
    REQUIRE(out.size() >= 20);
    return out;
}

double score(const Labelled& a, const std::string& text) { return mark_answer(rubric(a.question), text).score; }

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string w; in >> w;) out.push_back(w);
    return out;
}

std::string join(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
    return out;
}

// Sentences by ". " and line ends: crude, and good enough for texts of our own.
std::vector<std::string> sentences_of(const std::string& text) {
    std::vector<std::string> out = {""};
    for (std::size_t i = 0; i < text.size(); ++i) {
        out.back() += text[i];
        const bool ends = text[i] == '\n' || ((text[i] == '.' || text[i] == '!' || text[i] == '?') && (i + 1 == text.size() || text[i + 1] == ' '));
        if (ends) out.emplace_back();
    }
    std::erase_if(out, [](const std::string& s) { return s.find_first_not_of(" \n") == std::string::npos; });
    return out;
}

std::string denied(const std::string& sentence) {
    std::string s = sentence.substr(sentence.find_first_not_of(" \n"));
    s[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(s[0])));
    return " It is not true that " + s;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
    return text;
}

}  // namespace

TEST_SUITE("properties") {
    TEST_CASE("shuffled words fail") {
        Prng prng(1);
        std::size_t tried = 0;
        for (const Labelled& a : strong_answers()) {
            std::vector<std::string> words = words_of(a.answer);
            if (words.size() < 40) continue;  // a telegram has no grammar to lose
            for (int round = 0; round < 5; ++round) {
                for (std::size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[prng.below(i)]);
                CHECK_MESSAGE(score(a, join(words)) < 60, a.id << ": " << join(words));
                ++tried;
            }
        }
        CHECK(tried >= 60);
    }
    TEST_CASE("every sentence denied: nothing is left") {
        for (const Labelled& a : strong_answers()) {
            std::string all;
            for (const std::string& s : sentences_of(a.answer)) all += denied(s);
            CHECK_MESSAGE(score(a, all) < 40, a.id << ": " << score(a, all) << " " << all);
        }
    }
    TEST_CASE("a denied sentence never raises the mark, and mostly lowers it") {
        std::size_t lowered = 0, tried = 0;
        for (const Labelled& a : strong_answers()) {
            const double before = score(a, a.answer);
            const auto sentences = sentences_of(a.answer);
            for (std::size_t i = 0; i < sentences.size(); ++i) {
                std::string text;
                for (std::size_t k = 0; k < sentences.size(); ++k) text += k == i ? denied(sentences[k]) : sentences[k];
                const double after = score(a, text);
                CHECK_MESSAGE(after <= before, a.id << " sentence " << i);
                lowered += after < before ? 1 : 0;
                ++tried;
            }
        }
        MESSAGE("denying one sentence lowered the mark in " << lowered << " of " << tried << " cases");
        CHECK(lowered * 10 >= tried * 6);
    }
    TEST_CASE("filler and adjectives do not raise a mark") {
        for (const char* name : {"answers_a", "answers_b"})
            for (const Labelled& a : test::read_labelled(std::string(OOMLAB_SOURCE_DIR "/tests/grader/corpus/") + name + ".jsonl")) {
                const double before = score(a, a.answer);
                CHECK_MESSAGE(score(a, "Thank you for this very good and truly interesting question. " + a.answer) <= before + 0.5, a.id);
                CHECK_MESSAGE(score(a, a.answer + "\nIn summary, a thorough and professional approach pays off in practice.") <= before + 0.5, a.id);
                CHECK_MESSAGE(score(a, replaced(a.answer, " the ", " the very significant ")) <= before + 0.5, a.id);
            }
    }
    TEST_CASE("a concept goes with its only sentence") {
        const std::string rest = "The process got SIGKILL because host memory passed the cgroup limit. There is no traceback.";
        const auto state = [&](const std::string& text, const char* id) {
            for (const ConceptMark& c : mark_answer(rubric(3), text).concepts)
                if (c.id == id) return c.state;
            return State::absent;
        };
        CHECK(state(rest + " Check dmesg for the line.", "confirm") >= State::claimed);
        CHECK(state(rest, "confirm") == State::absent);
        CHECK(state(rest, "host_limit") >= State::claimed);
    }
    TEST_CASE("synonyms do not change a mark") {
        const std::pair<const char*, const char*> pairs[] = {
            {"OOM killer", "out-of-memory killer"}, {" RAM", " host memory"}, {"chunked prefill", "prefill in chunks"}, {"leak", "memory leak"}, {"gateway", "proxy"},
            {"SIGKILL", "signal 9"},               {"GPU", "card"},        {"max_num_seqs", "--max-num-seqs"},      {"isn't", "is not"},   {"won't", "will not"}};
        for (const Labelled& a : strong_answers()) {
            const double before = score(a, a.answer);
            for (const auto& [from, to] : pairs) CHECK_MESSAGE(std::abs(score(a, replaced(a.answer, from, to)) - before) <= 6, a.id << " " << from);
        }
    }
    TEST_CASE("the question, the model answer and the hints earn nothing") {
        for (int q = 1; q <= kQuestions; ++q) {
            const Rubric& r = rubric(q);
            CHECK(mark_answer(r, r.model_answer).score < 30);
            CHECK(mark_answer(r, r.question).score < 10);
            CHECK(mark_answer(r, "").score == 0);
        }
    }
    TEST_CASE("one mark for one text, and quickly enough for a very long one") {
        std::string longest;
        for (const Labelled& a : strong_answers()) longest += a.answer + "\n";
        for (int i = 0; i < 4; ++i) longest += longest;
        const Mark once = mark_answer(rubric(1), longest);
        CHECK(once.score == mark_answer(rubric(1), longest).score);
    }
}
