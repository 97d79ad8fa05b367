#include <doctest/doctest.h>

#include "grader/concepts/matcher.hpp"

using namespace oomlab;
using namespace oomlab::grader;

TEST_SUITE("text") {
    TEST_CASE("contractions become words, with or without their apostrophe") {
        const Text a = prepare_text("It isn't random. It doesnt leak.");
        REQUIRE(a.sentences.size() == 2);
        CHECK(a.tokens[1].word == "is");
        CHECK(a.tokens[2].word == "not");
        CHECK(a.tokens[5].word == "does");
        CHECK(a.tokens[6].word == "not");
    }
    TEST_CASE("flags, figures and names with dots stay one token") {
        const Text t = prepare_text("--max-num-seqs 64, torch.cuda.memory_allocated() at .05 or 28,000 in memory.events");
        CHECK(t.tokens[0].word == "max_num_seqs");
        CHECK(t.tokens[2].word == "memory_allocated");
        CHECK(t.tokens[4].word == ".05");
        CHECK(t.tokens[6].word == "28000");
        CHECK(t.tokens[8].word == "memory.events");
    }
    TEST_CASE("list items are sentences and their marks are not words") {
        const Text t = prepare_text("1. weights too big\n2. leak\n- host ram\n");
        REQUIRE(t.sentences.size() == 3);
        CHECK(t.tokens[0].word == "weights");
        CHECK(t.tokens[t.sentences[2].first].word == "host");
    }
    TEST_CASE("inflections share a stem") {
        CHECK(stem_of("caching") == stem_of("caches"));
        CHECK(stem_of("capped") == stem_of("cap"));
        CHECK(stem_of("limits") == stem_of("limiting"));
        CHECK(stem_of("process") == "process");
    }
    TEST_CASE("edits count a swap as one") {
        CHECK(within_edits("promt", "prompt", 1));
        CHECK(within_edits("peolpe", "people", 1));
        CHECK_FALSE(within_edits("allocated", "reserved", 2));
    }
    TEST_CASE("any bytes are read without harm") {
        std::string bytes;
        for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 37) % 256);
        const Text t = prepare_text(bytes);
        for (u32 s = 0; s < t.sentences.size(); ++s) CHECK(t.quote(s).find('\x1b') == std::string::npos);
        CHECK(prepare_text("").tokens.empty());
        CHECK(prepare_text(std::string(400000, 'a') + " b").truncated);
    }
}

namespace {
struct Bench {
    Vocabulary vocabulary;
    Pattern pattern;
    explicit Bench(const char* source) {
        REQUIRE(vocabulary.define("neg_before", {"not", "no", "never", "instead of"}));
        REQUIRE(vocabulary.define("neg_after", {"is a myth"}));
        REQUIRE(vocabulary.define("neg_sentence", {"is not true that"}));
        REQUIRE(vocabulary.define("neg_stop", {"but", "it"}));
        REQUIRE(vocabulary.define("leak", {"leak*", "(tensors|references) (are |stay )*kept"}));
        auto p = compile_pattern(source, vocabulary);
        REQUIRE(p);
        pattern = *p;
        REQUIRE(vocabulary.finish());
    }
    std::vector<Hit> operator()(const char* answer) {
        Text t = prepare_text(answer);
        vocabulary.correct(t);
        const Occurrences found = vocabulary.find(t);
        const Stance stance(t, found, vocabulary);
        return match(pattern, t, found, stance);
    }
};
}  // namespace

TEST_SUITE("pattern") {
    TEST_CASE("two sets within one sentence, in any order") {
        Bench b("allocated & @leak");
        CHECK(b("Allocated climbs: a leak.").size() == 1);
        CHECK(b("A leak when allocated climbs.").size() == 1);
        CHECK(b("The references are kept and allocated grows.").size() == 1);
        CHECK(b("Allocated climbs. That is a leak.").empty());
    }
    TEST_CASE("order, distance and what must not stand between") {
        CHECK(Bench("capture > restart")("Capture the log, then restart.").size() == 1);
        CHECK(Bench("capture > restart")("Restart, then capture the log.").empty());
        CHECK(Bench("[4] capture & restart")("Capture all of the many logs and only then restart.").empty());
        CHECK(Bench("startup & weights ! leak")("At startup a leak, later the weights.").empty());
    }
    TEST_CASE("a misspelt word is understood, a different word is not") {
        CHECK(Bench("fragmentation")("It is fragmentaion").size() == 1);
        CHECK(Bench("lower")("The flower is slower").empty());
    }
    TEST_CASE("denial in front, behind, and for a whole sentence") {
        Bench b("allocated & @leak");
        CHECK(b("Allocated growing is not a leak.")[0].denied);
        CHECK(b("It is not true that allocated growing means a leak.")[0].denied);
        CHECK(b("Allocated growing as a leak is a myth.")[0].denied);
        CHECK_FALSE(b("It is not random: allocated growing means a leak.")[0].denied);
        CHECK_FALSE(b("Allocated growing means a leak, but it is not random.")[0].denied);
    }
    TEST_CASE("an unknown set is refused with the nearest name") {
        Vocabulary v;
        REQUIRE(v.define("fragmentation", {"hole"}));
        REQUIRE(compile_pattern("@fragmentatoin", v));
        const auto r = v.finish();
        REQUIRE_FALSE(r);
        CHECK(r.error().message.find("nearest: @fragmentation") != std::string::npos);
    }
}
