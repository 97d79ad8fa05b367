#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <optional>
#include <vector>

#include "labs/server/memory/detail/rounding.hpp"

namespace oomlab {
namespace {

using Applied = Result<void>;

constexpr u64 kLargestMib = u64{1} << 40;  // an exbibyte: beyond it the bytes would overflow
constexpr std::size_t kMaxConfChars = 4096;

Failure<Error> bad(std::string_view key, std::string_view value, std::string_view takes) {
    return fail(Error::parse(
        fmt::format("PYTORCH_ALLOC_CONF: {} cannot be '{}': it takes {}", key, value, takes)));
}

std::optional<u64> whole_number(std::string_view text) {
    u64 n = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, n);
    if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
    return n;
}

std::optional<double> fraction(std::string_view text) {
    double x = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, x);
    if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
    return x;
}

Applied set_large_segment(AllocConf& conf, std::string_view value) {
    const auto mib = whole_number(value);
    // Below 10 a request of just under 10 MiB would not fit its own segment; odd sizes would not be
    // whole pages of the driver.
    if (!mib || *mib < 10 || *mib % 2 != 0 || *mib > kLargestMib) {
        return bad("large_segment_size_mb", value, "an even number of MiB, 10 or more");
    }
    conf.large_segment_bytes = *mib * kMiB;
    return {};
}

Applied set_max_split(AllocConf& conf, std::string_view value) {
    const auto mib = whole_number(value);
    if (!mib || *mib < 20 || *mib > kLargestMib) {
        return bad("max_split_size_mb", value, "a number of MiB, 20 or more");
    }
    conf.max_split_bytes = *mib * kMiB;
    return {};
}

Applied set_non_split_rounding(AllocConf& conf, std::string_view value) {
    const auto mib = whole_number(value);
    if (!mib || *mib == 0 || *mib > kLargestMib) {
        return bad("max_non_split_rounding_mb", value, "a number of MiB, 1 or more");
    }
    conf.max_non_split_rounding_bytes = *mib * kMiB;
    return {};
}

Applied set_gc_threshold(AllocConf& conf, std::string_view value) {
    const auto x = fraction(value);
    if (!x || !(*x > 0 && *x < 1)) {
        return bad("garbage_collection_threshold", value,
                   "a fraction between 0 and 1, both excluded");
    }
    conf.garbage_collection_threshold = *x;
    return {};
}

Applied set_memory_fraction(AllocConf& conf, std::string_view value) {
    const auto x = fraction(value);
    if (!x || !(*x >= 0 && *x <= 1)) {
        return bad("per_process_memory_fraction", value, "a fraction from 0 to 1");
    }
    conf.per_process_memory_fraction = *x;
    return {};
}

Applied set_expandable(AllocConf& conf, std::string_view value) {
    if (value != "True" && value != "False") {
        return bad("expandable_segments", value, "True or False");
    }
    conf.expandable_segments = value == "True";
    return {};
}

constexpr std::string_view kDivisionsTake =
    "a power of two (or 0), or a list such as [256:1,512:2,>:8] of sizes in MiB";

std::optional<u64> divisions_of(std::string_view text) {
    const auto n = whole_number(text);
    if (!n || (*n != 0 && !std::has_single_bit(*n))) return std::nullopt;
    return n;
}

// Slots between two keys that are not listed stay 0; the first key also fills those below it, and
// ">" those after the last.
Applied set_divisions(AllocConf& conf, std::string_view value) {
    constexpr std::string_view kKey = "roundup_power2_divisions";
    auto& slots = conf.roundup_power2_divisions;
    if (value.empty() || value.front() != '[') {
        const auto n = divisions_of(value);
        if (!n) return bad(kKey, value, kDivisionsTake);
        slots.fill(*n);
        return {};
    }
    if (value.back() != ']') return bad(kKey, value, kDivisionsTake);
    slots.fill(0);
    std::optional<std::size_t> last;
    std::string_view list = value.substr(1, value.size() - 2);
    while (!list.empty()) {
        const std::string_view item = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), item.size() + 1));
        const std::size_t colon = item.find(':');
        if (colon == std::string_view::npos) return bad(kKey, value, kDivisionsTake);
        const std::string_view size = item.substr(0, colon);
        const auto n = divisions_of(item.substr(colon + 1));
        if (!n) return bad(kKey, value, kDivisionsTake);
        if (size == ">") {
            if (!last) return bad(kKey, value, "a size before '>'");
            std::fill(slots.begin() + static_cast<std::ptrdiff_t>(*last) + 1, slots.end(), *n);
            continue;
        }
        const auto mib = whole_number(size);
        if (!mib || !std::has_single_bit(*mib)) return bad(kKey, value, kDivisionsTake);
        const std::size_t slot = std::min<std::size_t>(std::bit_width(*mib) - 1, slots.size() - 1);
        if (!last) std::fill(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slot), *n);
        slots[slot] = *n;
        last = slot;
    }
    if (!last) return bad(kKey, value, kDivisionsTake);
    return {};
}

Applied set_backend(AllocConf&, std::string_view value) {
    if (value == "native") return {};
    if (value == "cudaMallocAsync") {
        return fail(
            Error::usage("PYTORCH_ALLOC_CONF: backend:cudaMallocAsync is not supported yet: only "
                         "backend:native is"));
    }
    return bad("backend", value, "native");
}

// Has no effect on the figures of one thread of eager work: read and set aside.
Applied set_nothing(AllocConf&, std::string_view) {
    return {};
}

struct Key {
    std::string_view name;
    Applied (*apply)(AllocConf&, std::string_view);  // null: known to PyTorch, not to us
};
constexpr Key kKeys[] = {
    {"backend", set_backend},
    {"large_segment_size_mb", set_large_segment},
    {"max_split_size_mb", set_max_split},
    {"max_non_split_rounding_mb", set_non_split_rounding},
    {"roundup_power2_divisions", set_divisions},
    {"garbage_collection_threshold", set_gc_threshold},
    {"expandable_segments", set_expandable},
    {"per_process_memory_fraction", set_memory_fraction},
    {"release_lock_on_cudamalloc", set_nothing},
    {"graph_capture_record_stream_reuse", set_nothing},
    {"pinned_use_cuda_host_register", set_nothing},
    {"pinned_num_register_threads", set_nothing},
    {"pinned_use_background_threads", set_nothing},
    {"throw_on_cudamalloc_oom", nullptr},
    {"expandable_segments_reserve", nullptr},
    {"expandable_segments_reserve_by_class", nullptr},
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row.back();
}

std::string_view nearest_key(std::string_view name) {
    const auto* nearest =
        std::min_element(std::begin(kKeys), std::end(kKeys), [&](const Key& a, const Key& b) {
            return edit_distance(a.name, name) < edit_distance(b.name, name);
        });
    return nearest->name;
}

// The next "key:value" of the text, which shrinks by it; a list in brackets may hold commas.
std::string_view next_pair(std::string_view& text) {
    std::size_t depth = 0, end = 0;
    for (; end < text.size(); ++end) {
        if (text[end] == '[') ++depth;
        if (text[end] == ']' && depth > 0) --depth;
        if (text[end] == ',' && depth == 0) break;
    }
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    return pair;
}

}  // namespace

Result<AllocConf> parse_alloc_conf(std::string_view given) {
    if (given.size() > kMaxConfChars) {
        return fail(Error::parse(
            fmt::format("PYTORCH_ALLOC_CONF: longer than {} characters", kMaxConfChars)));
    }
    std::string compact;
    for (const char c : given) {
        if (c == ' ') continue;
        if (c < 0x21 || c > 0x7e) {
            return fail(Error::parse("PYTORCH_ALLOC_CONF: only printable ASCII is accepted"));
        }
        compact += c;
    }
    AllocConf conf;
    bool rounding_given = false;
    std::string_view text = compact;
    while (!text.empty()) {
        const std::string_view pair = next_pair(text);
        if (pair.empty()) continue;
        const std::size_t colon = pair.find(':');
        if (colon == std::string_view::npos) {
            return fail(
                Error::parse(fmt::format("PYTORCH_ALLOC_CONF: '{}' is not of the form key:value "
                                         "(as in max_split_size_mb:200)",
                                         pair)));
        }
        const std::string_view name = pair.substr(0, colon);
        const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                       [&](const Key& k) { return k.name == name; });
        if (key == std::end(kKeys)) {
            return fail(
                Error::parse(fmt::format("PYTORCH_ALLOC_CONF: unknown key '{}' (did you mean {}?)",
                                         name, nearest_key(name))));
        }
        if (key->apply == nullptr) {
            return fail(
                Error::usage(fmt::format("PYTORCH_ALLOC_CONF: {} is not supported yet", name)));
        }
        OOMLAB_TRY_VOID(key->apply(conf, pair.substr(colon + 1)));
        rounding_given = rounding_given || name == "max_non_split_rounding_mb";
    }
    if (!rounding_given) conf.max_non_split_rounding_bytes = conf.large_segment_bytes;
    return conf;
}

}  // namespace oomlab
