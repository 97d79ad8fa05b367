// Reading a config.json by the many names that families give the same thing. Private to this room.
//
// Looks in text_config (or its cousins) first, then in the outer object. Numbers are range-checked
// here, once: everything behind this line may multiply them without overflow.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"

namespace oomlab::config {

using Json = nlohmann::json;
using Names = std::initializer_list<const char*>;

struct Limits {
    static constexpr u64 kFileBytes = 8 * kMiB;
    static constexpr u64 kHidden = 1ULL << 17, kIntermediate = 1ULL << 20, kLayers = 1ULL << 11;
    static constexpr u64 kHeads = 1ULL << 12, kHeadDim = 1ULL << 14, kVocab = 1ULL << 23;
    static constexpr u64 kExperts = 1ULL << 12, kPositions = 1ULL << 32;
    static constexpr double kParameters = 1e14;
};

class Fields {
  public:
    // Python writes Infinity and NaN into JSON; both are read as null.
    static Result<Fields> parse(std::string_view text, const std::string& name);

    const Json* find(Names names) const;       // null counts as absent
    const Json* find_here(Names names) const;  // in text_config only (or the only object)
    bool has(Names names) const { return find(names) != nullptr; }
    // An absent number is `absent`; a wrong one is remembered as the first error.
    u64 number(Names names, u64 absent, u64 limit);
    u64 required(Names names, u64 limit);
    double real(Names names, double absent) const;
    bool flag(Names names, bool absent) const;
    std::string text(Names names) const;
    std::vector<std::string> texts(Names names) const;
    // True when the model was nested: a multimodal or composed model.
    bool nested() const { return inner_ != nullptr; }
    const Json& outer() const { return outer_; }
    void refuse(const std::string& message);
    const std::optional<Error>& error() const { return error_; }

    Fields(const Fields&) = delete;
    Fields(Fields&& other) noexcept;

  private:
    Fields() = default;
    void find_inner();

    Json outer_;
    const Json* inner_ = nullptr;
    std::string name_;
    std::optional<Error> error_;
};

// Control characters never reach a message.
std::string printable(std::string_view text, std::size_t limit = 60);

}  // namespace oomlab::config
