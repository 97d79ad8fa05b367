// A table of a TOML file, read key by key, with errors a learner can act on: file:line:column, what
// was expected, and for an unknown key the nearest known one. The first error wins and stays.
//
// Use: ask for every key once, then finish(); what was never asked for is refused. Include it from
// sources only: it brings toml++ along.
#pragma once

#include <toml++/toml.h>

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"
#include "labs/catalog/text_file.hpp"

namespace oomlab {

// Parses TOML; errors carry file:line:column.
Result<toml::table> parse_toml(std::string_view text, const std::string& file);

class TomlReader {
  public:
    TomlReader(const toml::table& table, std::string file, std::string section,
               std::optional<Error>& first_error);

    bool has(std::string_view key);
    std::string text(std::string_view key, std::string fallback);
    bool flag(std::string_view key, bool fallback);
    u64 count(std::string_view key, u64 fallback, u64 low, u64 high);
    double number(std::string_view key, double fallback, double low, double high);
    u64 bytes(std::string_view key, u64 fallback);
    double seconds(std::string_view key, double fallback);
    std::string one_of(std::string_view key, std::string fallback,
                       std::initializer_list<const char*> allowed);
    // The raw node, marked as known; nullptr when absent.
    const toml::node* node(std::string_view key);
    const toml::table* table(std::string_view key);
    std::vector<const toml::table*> tables(std::string_view key);
    std::vector<std::string> texts(std::string_view key);
    std::vector<u64> counts(std::string_view key);

    void error(const toml::node* where, const std::string& message);
    // Refuses every key that was not asked for.
    void finish();
    const std::string& file() const { return file_; }
    std::optional<Error>& first_error() { return first_error_; }

  private:
    const toml::node* find(std::string_view key);
    std::string place(const toml::node* where) const;
    const toml::table& table_;
    std::string file_, section_;
    std::optional<Error>& first_error_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace oomlab
