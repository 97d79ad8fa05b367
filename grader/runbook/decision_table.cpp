#include "grader/runbook/decision_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "labs/catalog/toml_reader.hpp"

namespace oomlab::grader {
namespace {

constexpr std::size_t kMaxRules = 200;

// "line:column: message" of a block becomes a place in the file.
std::string place(const std::string& file, u32 first_line, const toml::node& node) {
    return fmt::format("{}:{}:{}", file, first_line + node.source().begin.line - 1, node.source().begin.column);
}

std::vector<std::string> names(const auto& map) {
    std::vector<std::string> out;
    for (const auto& [name, value] : map) out.push_back(name);
    return out;
}

std::string hint(const std::string& word, const std::vector<std::string>& known) {
    const std::string near = nearest(word, known);
    return near.empty() ? std::string() : fmt::format(" (nearest: '{}')", near);
}

class TableReader {
  public:
    TableReader(const std::string& file, u32 line, const DrillLanguage& language) : file_(file), line_(line), language_(language) {}

    Result<DecisionTable> read(const std::string& source) {
        toml::table root;
        try {
            root = toml::parse(std::string_view(source), std::string_view(file_));
        } catch (const toml::parse_error& e) {
            return fail(Error::parse(fmt::format("{}:{}:{}: {}", file_, line_ + e.source().begin.line - 1, e.source().begin.column, e.description())));
        }
        DecisionTable table;
        table.line = line_;
        for (const auto& [key, node] : root)
            if (key.str() != "rule") return fail(Error::parse(fmt::format("{}: unknown key '{}' (the table has [[rule]] only)", place(file_, line_, node), key.str())));
        const toml::array* rules = root["rule"].as_array();
        if (rules == nullptr || rules->empty()) return fail(Error::parse(fmt::format("{}:{}:1: the decision table has no [[rule]]", file_, line_)));
        if (rules->size() > kMaxRules) return fail(Error::parse(fmt::format("{}:{}:1: more than {} rules", file_, line_, kMaxRules)));
        for (const toml::node& n : *rules) {
            const toml::table* t = n.as_table();
            if (t == nullptr) return fail(Error::parse(fmt::format("{}: a rule is a table", place(file_, line_, n))));
            OOMLAB_TRY(rule, read_rule(*t));
            table.rules.push_back(std::move(rule));
        }
        return table;
    }

  private:
    Result<Rule> read_rule(const toml::table& t) {
        Rule rule;
        rule.line = line_ + t.source().begin.line - 1;
        for (const auto& [key, node] : t) {
            if (key.str() == "type") {
                rule.type = static_cast<int>(node.value_or(0));
            } else if (key.str() == "note") {
                if (!node.is_string()) return fail(Error::parse(fmt::format("{}: 'note' is a text", place(file_, line_, node))));
            } else if (key.str() == "steps") {
                OOMLAB_TRY_VOID(read_steps(node, rule));
            } else if (key.str() == "if") {
                const toml::table* conditions = node.as_table();
                if (conditions == nullptr) return fail(Error::parse(fmt::format("{}: 'if' is a table of facts, such as {{ exit_code = 137 }}", place(file_, line_, node))));
                for (const auto& [fact, value] : *conditions) OOMLAB_TRY_VOID(read_condition(std::string(fact.str()), value, rule));
            } else {
                const std::string word(key.str());
                return fail(Error::parse(fmt::format("{}: unknown key '{}'{}", place(file_, line_, node), word, hint(word, {"if", "type", "steps", "note"}))));
            }
        }
        if (rule.type < 1 || rule.type > 6) return fail(Error::parse(fmt::format("{}:{}:1: a rule needs a type, 1 to 6", file_, rule.line)));
        return rule;
    }

    Result<void> read_steps(const toml::node& node, Rule& rule) {
        const toml::array* list = node.as_array();
        if (list == nullptr) return fail(Error::parse(fmt::format("{}: 'steps' is a list of step names", place(file_, line_, node))));
        for (const toml::node& n : *list) {
            const std::string step = n.value_or(std::string());
            if (language_.steps.count(step) == 0)
                return fail(Error::parse(fmt::format("{}: unknown step '{}'{}", place(file_, line_, n), printable(step, 60), hint(step, names(language_.steps)))));
            rule.steps.push_back(step);
        }
        return {};
    }

    Result<void> read_condition(const std::string& fact, const toml::node& node, Rule& rule) {
        const auto kind = language_.facts.find(fact);
        if (kind == language_.facts.end())
            return fail(Error::parse(fmt::format("{}: unknown fact '{}'{}", place(file_, line_, node), printable(fact, 60), hint(fact, names(language_.facts)))));
        Condition c;
        c.fact = fact;
        if (const toml::array* list = node.as_array()) {
            for (const toml::node& n : *list) OOMLAB_TRY_VOID(add_value(kind->second, n, c));
        } else {
            OOMLAB_TRY_VOID(add_value(kind->second, node, c));
        }
        rule.conditions.push_back(std::move(c));
        return {};
    }

    Result<void> add_value(const FactKind& kind, const toml::node& node, Condition& c) {
        if (kind.kind == FactKind::Kind::flag) {
            const auto v = node.value<bool>();
            if (!v) return fail(Error::parse(fmt::format("{}: '{}' is true or false", place(file_, line_, node), c.fact)));
            c.values.emplace_back(*v);
            return {};
        }
        if (kind.kind == FactKind::Kind::number) {
            if (const auto v = node.value_exact<double>()) {
                c.values.emplace_back(*v);
                return {};
            }
            if (const auto v = node.value_exact<i64>()) {
                c.values.emplace_back(static_cast<double>(*v));
                return {};
            }
            return add_comparison(node, c);
        }
        const auto word = node.value<std::string>();
        if (!word || std::find(kind.words.begin(), kind.words.end(), *word) == kind.words.end())
            return fail(Error::parse(fmt::format("{}: '{}' is one of: {}{}", place(file_, line_, node), c.fact, fmt::join(kind.words, ", "),
                                                 word ? hint(*word, kind.words) : std::string())));
        c.values.emplace_back(*word);
        return {};
    }

    Result<void> add_comparison(const toml::node& node, Condition& c) {
        const std::string text = node.value_or(std::string());
        struct Form {
            std::string_view sign;
            Condition::Op op;
        };
        constexpr Form kForms[] = {{">=", Condition::Op::greater_equal}, {"<=", Condition::Op::less_equal}, {"!=", Condition::Op::differs},
                                   {">", Condition::Op::greater},        {"<", Condition::Op::less}};
        for (const Form& f : kForms) {
            if (text.compare(0, f.sign.size(), f.sign) != 0) continue;
            char* end = nullptr;
            const std::string number = text.substr(f.sign.size());
            const double v = std::strtod(number.c_str(), &end);
            if (end == number.c_str() || *end != '\0' || !std::isfinite(v)) break;
            c.op = f.op;
            c.values.assign(1, FactValue(v));
            return {};
        }
        return fail(Error::parse(fmt::format("{}: '{}' is a number, a list of numbers, or a comparison such as \"> 20000\"", place(file_, line_, node), c.fact)));
    }

    const std::string& file_;
    u32 line_;
    const DrillLanguage& language_;
};

bool holds(const Condition& c, const Facts& facts) {
    const auto it = facts.find(c.fact);
    if (it == facts.end()) return false;
    if (c.op == Condition::Op::equal) return std::find(c.values.begin(), c.values.end(), it->second) != c.values.end();
    const double* have = std::get_if<double>(&it->second);
    const double* want = std::get_if<double>(&c.values.front());
    if (have == nullptr || want == nullptr) return false;
    switch (c.op) {
        case Condition::Op::less: return *have < *want;
        case Condition::Op::less_equal: return *have <= *want;
        case Condition::Op::greater: return *have > *want;
        case Condition::Op::greater_equal: return *have >= *want;
        case Condition::Op::differs: return *have != *want;
        case Condition::Op::equal: break;
    }
    return false;
}

}  // namespace

Result<DecisionTable> find_decision_table(const Markdown& runbook, const std::string& file, const DrillLanguage& language) {
    const MdBlock* found = nullptr;
    for (const MdBlock& b : runbook.blocks) {
        if (b.kind != MdBlock::Kind::code || b.language != "toml" || b.text.find("[[rule]]") == std::string::npos) continue;
        if (found != nullptr)
            return fail(Error::parse(fmt::format("{}:{}:1: a second decision table; the first stands at line {}", file, b.line, found->line)));
        found = &b;
    }
    if (found == nullptr)
        return fail(Error::parse(fmt::format("{}: no decision table: a fenced block that begins with ```toml and holds [[rule]] (oomlab runbook new shows one)", file)));
    return TableReader(file, found->line, language).read(found->text);
}

const Rule* decide(const DecisionTable& table, const Facts& facts) {
    for (const Rule& r : table.rules)
        if (std::all_of(r.conditions.begin(), r.conditions.end(), [&](const Condition& c) { return holds(c, facts); })) return &r;
    return nullptr;
}

}  // namespace oomlab::grader
