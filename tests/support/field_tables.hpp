// The measured tables that may lie beside a checkout (../shared/field): TSV rows by column name,
// and a Hugging Face config.json written from a row of models.tsv with the key names its family
// uses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace oomlab::test {

using Row = std::map<std::string, std::string>;

// Empty when the file is absent.
std::vector<Row> read_tsv(const std::string& path);
std::string field_path(const std::string& file);

std::string cell(const Row& row, const std::string& column);
std::optional<double> number(const Row& row, const std::string& column);

// What the family's config.json would say; `quantization_config` (JSON text) is added when not
// empty.
std::string config_json(const Row& model, const std::string& quantization_config = "");

}  // namespace oomlab::test
