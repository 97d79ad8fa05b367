// The verdict on a sampled series: leak, fragmentation, outside, flat, or not long enough.
#pragma once

#include <string>
#include <vector>

#include "labs/diagnosis/trend.hpp"
#include "labs/field/leak/sample_table.hpp"

namespace oomlab::field {

enum class LeakVerdict { leak, fragmentation, outside, flat, not_long_enough };
const char* leak_verdict_name(LeakVerdict v);  // "leak", ..., "not_long_enough"

struct SeriesFinding {
    std::string name;  // the file's column, or "reserved - allocated"
    std::string kind;  // role_name, or "gap", "beside"
    diagnosis::Trend trend;
    std::vector<diagnosis::TrendSample> samples;
};

struct GroupFinding {
    std::string group;
    LeakVerdict verdict = LeakVerdict::flat;
    std::string
        where;  // "allocated", "reserved - allocated", "outside of the allocator", "host", "device"
    std::string reason;  // one sentence
    std::vector<SeriesFinding> series;
    int decisive = -1;       // index into series
    double limit_bytes = 0;  // 0: not known
    std::string limit_source;
    double now_bytes = 0;
    diagnosis::TimeToLimit until_limit;
    double bytes_per_1000_requests = 0;  // 0: no counter
    std::vector<std::string> notes, ask_for;
};

struct LeakReport {
    std::string format;
    u64 rows = 0, bad_rows = 0;
    std::vector<GroupFinding> groups;
    std::size_t worst = 0;  // index of the group that decides
    std::vector<std::string> notes;
    const GroupFinding& decisive() const { return groups[worst]; }
};

struct LeakOptions {
    double limit_bytes = 0;  // 0: from the file's total or limit column
};

LeakReport find_leak(const SampleTable& table, const LeakOptions& options);

std::string leak_text(const LeakReport& report, bool plot);
std::string leak_json(const LeakReport& report);
// On failure: Error::io.
Result<void> leak_png(const LeakReport& report, const std::string& path);

}  // namespace oomlab::field
