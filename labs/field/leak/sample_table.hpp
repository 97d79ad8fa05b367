// Sampled memory figures of strangers as a table: one time column, named columns in bytes, a group
// a GPU or pod. Reads CSV with a header, `nvidia-smi --query-gpu=... --format=csv -l`, the answer
// of a Prometheus range query, and torch memory statistics by line (JSON, a dict, or key=value
// text).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/bytes.hpp"
#include "kernels/base/result.hpp"
#include "labs/diagnosis/trend.hpp"

namespace oomlab::field {

enum class Role {
    none,
    time,
    allocated,
    reserved,
    inactive_split,
    device_used,
    device_free,
    device_total,
    process_used,
    host_used,
    host_limit,
    requests,
    group,
    pid,
    ignored
};
const char* role_name(Role role);
// On failure: Error::usage with the accepted names.
Result<Role> parse_role(std::string_view name);

struct Column {
    std::string name;  // as the file spells it, printable
    Role role = Role::none;
    double scale = 0;       // to bytes; 0: not known from the name
    std::string unit_note;  // what was assumed about the unit, or ""
    std::vector<diagnosis::TrendSample> samples;
};

struct Group {
    std::string name;  // "GPU 0", "pod=a", or ""
    std::vector<Column> columns;
    std::vector<double> restarts_s;  // clock went back, or the pid changed
    const Column* find(Role role) const;
};

struct SampleTable {
    std::string format;  // "csv", "nvidia-smi", "prometheus", "lines"
    std::vector<Group> groups;
    std::vector<std::string> notes;
    u64 rows = 0, bad_rows = 0;
};

struct ReadOptions {
    std::map<std::string, Role> column_map;  // the file's column name -> role
    double every_s = 0;                      // spacing when the file has no time
};

struct ReadLimits {
    static constexpr u64 kFileBytes = 256 * kMiB, kJsonBytes = 64 * kMiB;
    static constexpr std::size_t kColumns = 256, kGroups = 64, kSamples = 1u << 20,
                                 kLine = 1u << 16;
};

// `name` is for messages. On failure: Error::parse with line and remedy.
Result<SampleTable> read_samples(std::string_view text, const std::string& name,
                                 const ReadOptions& options);

}  // namespace oomlab::field
