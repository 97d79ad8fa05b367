#include "ui/view_model/budget.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <fstream>
#include <sstream>

namespace oomlab::view {
namespace {

constexpr std::size_t kMostFileBytes = 256 * kKiB;

Result<u64> size_of(const toml::node& node) {
    if (const auto number = node.value<i64>()) {
        if (*number < 0) return fail(Error::parse("a size is never negative"));
        return static_cast<u64>(*number);
    }
    if (const auto number = node.value<double>()) {
        if (!(*number >= 0) || *number > 9e18) return fail(Error::parse("not a size"));
        return static_cast<u64>(*number);
    }
    if (const auto text = node.value<std::string>()) return parse_bytes(*text);
    return fail(Error::parse("not a size (write \"512MiB\", \"24 GiB\" or a number of bytes)"));
}

Result<void> read_table(const toml::table& table, const std::string& name, Prediction& into) {
    for (const auto& [key, node] : table) {
        std::string_view word = key.str();
        if (word.ends_with("_bytes")) word.remove_suffix(6);
        std::optional<u64>* line = word == "total" ? &into.total_bytes : nullptr;
        for (std::size_t o = 0; o < kOwners; ++o)
            if (kOwnerNames[o] == word) line = &into.owner_bytes[o];
        if (line == nullptr) continue;
        const toml::node* given = &node;
        if (const toml::table* inner = node.as_table()) given = inner->get("size");
        if (given == nullptr || given->value<std::string>() == "") continue;
        const auto size = size_of(*given);
        if (!size)
            return fail(Error::parse(fmt::format("{}:{}: {}: {}", name, node.source().begin.line,
                                                 std::string(key.str()), size.error().message)));
        *line = *size;
    }
    return {};
}

}  // namespace

bool Prediction::empty() const {
    for (const auto& line : owner_bytes)
        if (line) return false;
    return !total_bytes;
}

u64 Prediction::sum_bytes() const {
    u64 sum = 0;
    for (const auto& line : owner_bytes) sum += std::min(line.value_or(0), u64{1} << 50);
    return sum;
}

Result<Prediction> parse_prediction(std::string_view text, const std::string& name) {
    Prediction prediction;
    prediction.source = name;
    try {
        const toml::table table = toml::parse(text, std::string_view(name));
        OOMLAB_TRY_VOID(read_table(table, name, prediction));
        for (const char* section : {"owners", "prediction", "predict", "budget"})
            if (const auto* inner = table[section].as_table())
                OOMLAB_TRY_VOID(read_table(*inner, name, prediction));
    } catch (const toml::parse_error& e) {
        return fail(Error::parse(fmt::format("{}:{}:{}: {}", name, e.source().begin.line,
                                             e.source().begin.column, e.description())));
    }
    return prediction;
}

Result<Prediction> load_prediction(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail(Error::io(fmt::format("{}: cannot be read", path)));
    std::string text(kMostFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostFileBytes)
        return fail(Error::parse(fmt::format("{}: larger than 256 KiB, not a prediction", path)));
    return parse_prediction(text, path);
}

double BudgetLine::error_share() const {
    return measured_bytes == 0
               ? 0.0
               : static_cast<double>(error_bytes()) / static_cast<double>(measured_bytes);
}

std::vector<BudgetLine> budget_lines(const Prediction& prediction,
                                     const std::array<u64, kOwners>& measured_bytes) {
    std::vector<BudgetLine> lines;
    for (const Owner owner : stack_order()) {
        const auto o = static_cast<std::size_t>(owner);
        if (measured_bytes[o] == 0 && !prediction.owner_bytes[o]) continue;
        lines.push_back({owner, prediction.owner_bytes[o], measured_bytes[o]});
    }
    return lines;
}

const std::array<Owner, kOwners>& stack_order() {
    static constexpr std::array<Owner, kOwners> kOrder = {
        Owner::context, Owner::weights, Owner::kv, Owner::activations, Owner::workspace,
        Owner::graphs, Owner::communication, Owner::cached, Owner::unattributed,
        Owner::other_processes, Owner::viewer};
    return kOrder;
}

}  // namespace oomlab::view
