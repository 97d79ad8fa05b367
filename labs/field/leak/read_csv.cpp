// CSV with a header, and nvidia-smi's CSV, which is one with units and several GPUs mixed.
#include <algorithm>

#include "labs/field/leak/table_parts.hpp"

namespace oomlab::field::leak_parts {
namespace {

std::vector<std::string_view> split(std::string_view line, char separator) {
    std::vector<std::string_view> cells;
    bool quoted = false;
    std::size_t from = 0;
    for (std::size_t i = 0; i <= line.size() && cells.size() < ReadLimits::kColumns; ++i) {
        if (i < line.size() && line[i] == '"') quoted = !quoted;
        if (i == line.size() || (line[i] == separator && !quoted))
            cells.push_back(trim(line.substr(from, i - from))), from = i + 1;
    }
    return cells;
}

struct Plan {
    std::vector<std::string> names;
    std::vector<Meaning> meanings;
    std::size_t time = std::string::npos, pid = std::string::npos;
    std::vector<std::size_t> groups;
};

Plan plan_of(const std::vector<std::string_view>& header, const ReadOptions& options) {
    Plan p;
    bool any = false;
    for (std::size_t i = 0; i < header.size(); ++i) {
        p.names.push_back(printable(header[i]));
        Meaning m = meaning_of(header[i]);
        if (auto mapped = options.column_map.find(p.names.back());
            mapped != options.column_map.end())
            m.role = mapped->second;
        if (m.role == Role::time && p.time == std::string::npos) p.time = i;
        if (m.role == Role::pid) p.pid = i;
        if (m.role == Role::group) p.groups.push_back(i);
        any |= m.role != Role::none && m.role != Role::time && m.role != Role::group &&
               m.role != Role::pid && m.role != Role::ignored && m.role != Role::requests;
        p.meanings.push_back(m);
    }
    // Nothing recognised: one unnamed value column is taken for used memory.
    if (!any) {
        std::vector<std::size_t> left;
        for (std::size_t i = 0; i < p.meanings.size(); ++i)
            if (p.meanings[i].role == Role::none) left.push_back(i);
        if (left.size() == 1) p.meanings[left[0]].role = Role::device_used;
    }
    return p;
}

}  // namespace

Result<SampleTable> read_csv(std::string_view text, const std::string& name,
                             const ReadOptions& options) {
    std::string_view rest = text, line;
    u64 number = 0;
    while (next_line(rest, line) && (++number, trim(line).empty() || trim(line).front() == '#')) {
    }
    char separator = ',';
    const auto count = [&](char c) { return std::count(line.begin(), line.end(), c); };
    if (count('\t') > count(separator)) separator = '\t';
    if (count(';') > count(separator)) separator = ';';
    const std::string header(line);
    const Plan plan = plan_of(split(line, separator), options);
    const bool smi = header.find("memory.used") != std::string::npos ||
                     header.find("memory.free") != std::string::npos ||
                     header.find("used_gpu_memory") != std::string::npos;
    bool useful = false;
    for (const Meaning& m : plan.meanings)
        useful |= m.role == Role::allocated || m.role == Role::reserved ||
                  m.role == Role::device_used || m.role == Role::device_free ||
                  m.role == Role::process_used || m.role == Role::host_used;
    if (!useful) {
        std::string columns;
        for (const std::string& n : plan.names) columns += (columns.empty() ? "" : ", ") + n;
        return fail(
            Error::parse(name + ", line " + std::to_string(number) + ": no column says memory (" +
                         columns.substr(0, 300) +
                         "); name them with --column-map, such as --column-map allocated=" +
                         (plan.names.empty() ? "COLUMN" : plan.names.back().substr(0, 40))));
    }
    if (plan.time == std::string::npos && options.every_s <= 0)
        return fail(Error::parse(name + ", line " + std::to_string(number) +
                                 ": no time column; name it with --column-map time=COLUMN, or give "
                                 "the spacing with --every 10s"));
    TableBuilder builder(options);
    std::map<std::string, u64> seen;
    while (next_line(rest, line)) {
        ++number;
        if (trim(line).empty() || line.size() > ReadLimits::kLine || line == header) continue;
        const auto cells = split(line, separator);
        std::string group;
        for (std::size_t g : plan.groups)
            if (g < cells.size())
                group += (group.empty() ? "" : " ") + lower(plan.names[g]) + " " +
                         printable(cells[g], 40);
        double t = 0;
        if (plan.time != std::string::npos) {
            bool clock_only = false;
            auto read =
                plan.time < cells.size() ? read_time(cells[plan.time], &clock_only) : std::nullopt;
            if (!read) {
                ++builder.table.bad_rows;
                continue;
            }
            t = builder.steady_time(group, *read, clock_only);
        } else {
            if (seen.size() > ReadLimits::kGroups) seen.clear();
            t = static_cast<double>(seen[group]++) * options.every_s;
        }
        ++builder.table.rows;
        if (plan.pid != std::string::npos && plan.pid < cells.size())
            builder.pid(group, t, printable(cells[plan.pid], 20));
        for (std::size_t i = 0; i < cells.size() && i < plan.names.size(); ++i) {
            const Role role = plan.meanings[i].role;
            if (role == Role::none || role == Role::time || role == Role::group ||
                role == Role::pid || role == Role::ignored)
                continue;
            double scale = 0;
            auto value = read_value(cells[i], &scale);
            if (!value) continue;  // "[N/A]", empty: a missing sample
            if (Column* c = builder.column(group, plan.names[i], plan.meanings[i]))
                builder.add(*c, t, *value, scale);
        }
    }
    if (builder.table.rows == 0)
        return fail(Error::parse(name + ": no row could be read below the header (times are ISO "
                                        "8601, nvidia-smi's form, or seconds)"));
    return builder.finish(smi ? "nvidia-smi" : "csv");
}

}  // namespace oomlab::field::leak_parts
