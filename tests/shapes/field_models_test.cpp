// Every measured model shape: parameters by formula against the published count.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>

#include "labs/catalog/model_config.hpp"
#include "labs/shapes/model_shape.hpp"
#include "tests/support/field_tables.hpp"

using namespace oomlab;

TEST_CASE("shapes: every model of the field table parses and its parameters add up") {
    const auto rows = test::read_tsv(test::field_path("models.tsv"));
    if (rows.empty()) {
        MESSAGE("skipped: ../shared/field/models.tsv is not here");
        return;
    }
    int compared = 0, close = 0;
    for (const auto& row : rows) {
        const std::string model = test::cell(row, "model");
        auto shape = parse_config_json(test::config_json(row), model);
        if (!shape) {
            MESSAGE(model << ": " << shape.error().message);
            const bool named = shape.error().message.find("intermediate_size") != std::string::npos;
            CHECK_MESSAGE(named, model);
            continue;
        }
        CHECK(shape->layers.size() == shape->num_hidden_layers);
        auto expected = test::number(row, "params_from_config");
        if (!expected) continue;
        ++compared;
        const double error = static_cast<double>(shape->total_params) / *expected - 1.0;
        if (std::fabs(error) < 2e-4)
            ++close;
        else
            MESSAGE(model << " " << shape->total_params << " against " << *expected << ", "
                          << 100 * error << " %");
    }
    MESSAGE(close << " of " << compared << " within 0.02 %");
    CHECK(close >= compared - 4);
}

TEST_CASE("shapes: the models that ship have their published sizes") {
    struct Known {
        const char* name;
        double params;
    };
    for (const Known& k : {Known{"llama-3.1-8b", 8030261248.0},
                           {"llama-3.1-70b", 70553706496.0},
                           {"llama-3.2-1b", 1235814400.0},
                           {"llama-3.2-3b", 3212749824.0},
                           {"qwen2.5-0.5b", 494032768.0},
                           {"qwen2.5-7b", 7615616512.0},
                           {"qwen2.5-14b", 14770033664.0},
                           {"qwen2.5-32b", 32763876352.0},
                           {"qwen3-30b-a3b", 30532122624.0},
                           {"mistral-7b", 7241732096.0},
                           {"mistral-small-24b", 23572403200.0},
                           {"mixtral-8x7b", 46702792704.0},
                           {"gemma-2-9b", 9241705984.0},
                           {"gemma-3-27b", 27009002240.0},
                           {"deepseek-v2-lite", 15706484224.0},
                           {"opt-125m", 125239296.0},
                           {"smollm2-135m", 134515008.0},
                           {"gpt-oss-20b", 20914757184.0}}) {
        auto shape = load_model_shape(k.name);
        REQUIRE_MESSAGE(shape, k.name);
        CHECK_MESSAGE(std::fabs(static_cast<double>(shape->total_params) / k.params - 1.0) < 1e-5,
                      k.name << " " << shape->total_params);
    }
    CHECK(load_model_shape("tiny"));
    CHECK(load_model_shape("LLaMA-3.1-8B"));
    auto wrong = load_model_shape("lama-3.1-8b");
    REQUIRE(!wrong);
    CHECK(wrong.error().message.find("did you mean llama-3.1-8b?") != std::string::npos);
}
