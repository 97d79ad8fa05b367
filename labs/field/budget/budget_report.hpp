// A budget for people, for programs, and as a picture.
#pragma once

#include <string>

#include "labs/field/budget/budget.hpp"

namespace oomlab::field {

// `explain`: each line's formula, the formula with numbers, and its known error.
std::string budget_text(const Budget& budget, bool explain);
std::string budget_json(const Budget& budget);
// Two side by side with differences; both fit or not on one line each.
std::string compare_text(const Budget& a, const std::string& name_a, const Budget& b,
                         const std::string& name_b);
std::string compare_json(const Budget& a, const Budget& b);
// The stack of one or two budgets as a PNG. On failure: Error::io.
Result<void> budget_plot(const std::vector<const Budget*>& budgets,
                         const std::vector<std::string>& names, const std::string& path);

}  // namespace oomlab::field
