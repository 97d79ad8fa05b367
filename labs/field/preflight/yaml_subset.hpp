// The part of YAML that Kubernetes manifests and compose files are written in: block and flow
// mappings and lists, plain, quoted and block scalars, comments, several documents. Anchors, tags
// and merge keys are read as text. JSON is a flow mapping. Bounded in depth, nodes and size.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"

namespace oomlab::field {

struct YamlNode {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text;                                      // scalar
    std::vector<YamlNode> items;                           // list
    std::vector<std::pair<std::string, YamlNode>> fields;  // map, in the file's order
    std::size_t line = 0;

    const YamlNode* get(std::string_view key) const;
    // get() along a path: "spec.template.spec".
    const YamlNode* at(std::string_view path) const;
    bool is_map() const { return kind == Kind::map; }
    bool is_list() const { return kind == Kind::list; }
    bool is_text() const { return kind == Kind::scalar; }
};

struct YamlLimits {
    static constexpr std::size_t kBytes = 4u << 20, kDepth = 64, kNodes = 200000;
};

// One node a document. On failure: Error::parse with name and line.
Result<std::vector<YamlNode>> parse_yaml_subset(std::string_view text, const std::string& name);

}  // namespace oomlab::field
