// A locked prediction beside what was measured, line by line: the ghost under the stack.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "ui/view_model/model.hpp"

namespace oomlab::view {

struct Prediction {
    std::string source;   // the file, for the caption
    std::array<std::optional<u64>, kOwners> owner_bytes{};
    std::optional<u64> total_bytes;

    bool empty() const;
    u64 sum_bytes() const;
};

// Reads figures by owner from TOML: `weights = "14.96 GiB"` or a number of bytes, at the top level
// or in a table [owners], [prediction], [predict] or [budget]; a key may end in `_bytes`; and a table
// by an owner's name with a `size`, as the budget's exercise has it. Other keys are none of its
// business. An empty size is a line without a prediction. On failure: Error::parse with file, line and remedy.
Result<Prediction> parse_prediction(std::string_view toml, const std::string& name);
Result<Prediction> load_prediction(const std::string& path);

struct BudgetLine {
    Owner owner;
    std::optional<u64> predicted_bytes;
    u64 measured_bytes = 0;   // the peak
    i64 error_bytes() const {
        return static_cast<i64>(measured_bytes) - static_cast<i64>(predicted_bytes.value_or(0));
    }
    // Of the measured bytes; 0 when there are none.
    double error_share() const;
};
// The lines that either side names, in the order of the stack.
std::vector<BudgetLine> budget_lines(const Prediction& prediction,
                                     const std::array<u64, kOwners>& measured_bytes);

// From the bottom of every stack to its top, chosen so that neighbours differ most.
const std::array<Owner, kOwners>& stack_order();

}  // namespace oomlab::view
