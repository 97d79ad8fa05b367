// Rows of budgets.tsv as budgets: the row's flags through the same parser a user's flags take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "labs/field/budget/budget.hpp"
#include "tests/support/field_tables.hpp"

namespace oomlab::test {

struct FieldRow {
    Row row;
    std::string id, model, engine, note;
    bool text_only = false, graded = false, four_bit = false;  // graded: A or B
    bool flags_printed = false;     // sequences, and tokens or length (or a default of the engine)
    bool parallel_printed = false;  // the figures are one GPU's, with known parallelism
    field::Budget budget;
    std::string error;  // why there is no budget
};

// Every row whose model is in models.tsv.
std::vector<FieldRow> field_rows();

// measured and computed, when both are known; in the row's own unit.
struct Pair {
    double measured = 0, computed = 0;
    double relative() const { return computed / measured - 1.0; }
};
std::optional<Pair> weights_pair(const FieldRow& r);
std::optional<Pair> kv_per_token_pair(const FieldRow& r);
std::optional<Pair> activation_pair(const FieldRow& r);
std::optional<Pair> pool_pair(const FieldRow& r);

double percentile(std::vector<double> values, double share);

}  // namespace oomlab::test
