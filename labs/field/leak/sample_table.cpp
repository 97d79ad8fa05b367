#include "labs/field/leak/sample_table.hpp"

#include <algorithm>
#include <cmath>

#include "labs/field/leak/table_parts.hpp"

namespace oomlab::field {
namespace {

using namespace leak_parts;

struct RoleName {
    Role role;
    const char* name;
};
constexpr RoleName kRoles[] = {{Role::none, "none"},
                               {Role::time, "time"},
                               {Role::allocated, "allocated"},
                               {Role::reserved, "reserved"},
                               {Role::inactive_split, "inactive_split"},
                               {Role::device_used, "device_used"},
                               {Role::device_free, "device_free"},
                               {Role::device_total, "device_total"},
                               {Role::process_used, "process_used"},
                               {Role::host_used, "host"},
                               {Role::host_limit, "host_limit"},
                               {Role::requests, "requests"},
                               {Role::group, "group"},
                               {Role::pid, "pid"},
                               {Role::ignored, "ignore"}};

double middle(std::vector<double> v) {
    if (v.empty()) return 0;
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

bool is_memory(Role role) {
    return role != Role::none && role != Role::time && role != Role::requests &&
           role != Role::group && role != Role::pid && role != Role::ignored;
}

// No unit in the name or the cells: the one that makes the level plausible for memory.
void guess_unit(Column& c) {
    if (c.scale > 0 || !is_memory(c.role)) return;
    std::vector<double> v;
    for (const auto& s : c.samples) v.push_back(std::fabs(s.value));
    const double level = middle(std::move(v));
    const char* unit = "bytes";
    c.scale = 1;
    if (level < 128)
        c.scale = 1073741824.0, unit = "GiB";
    else if (level < 262144)
        c.scale = 1048576.0, unit = "MiB";
    else if (level < 134217728.0)
        c.scale = 1024.0, unit = "KiB";
    c.unit_note = c.name + ": no unit given, read as " + unit;
}

// Collectors that change their unit in the middle: values 1000^k or 1024^k away from the usual
// level.
void mend_units(Column& c, std::vector<std::string>& notes) {
    if (!is_memory(c.role) || c.samples.size() < 10) return;
    std::vector<double> v;
    for (const auto& s : c.samples)
        if (s.value > 0) v.push_back(s.value);
    const double level = middle(std::move(v));
    if (level <= 0) return;
    std::size_t mended = 0;
    const double kFactors[] = {1024.0,     1048576.0,     1073741824.0,
                               1.0 / 1024, 1.0 / 1048576, 1.0 / 1073741824.0};
    std::vector<std::pair<std::size_t, double>> fixes;
    for (std::size_t i = 0; i < c.samples.size(); ++i) {
        const double ratio = c.samples[i].value / level;
        for (double f : kFactors)
            if (ratio > 0.7 * f && ratio < 1.43 * f) fixes.push_back({i, f});
    }
    if (fixes.size() < 3) return;
    for (const auto& [i, f] : fixes) c.samples[i].value /= f, ++mended;
    notes.push_back(c.name + ": " + std::to_string(mended) +
                    " samples are in another unit than the rest and were converted");
}

}  // namespace

const char* role_name(Role role) {
    for (const RoleName& r : kRoles)
        if (r.role == role) return r.name;
    return "none";
}

Result<Role> parse_role(std::string_view name) {
    std::string all;
    for (const RoleName& r : kRoles) {
        if (name == r.name) return r.role;
        all += (all.empty() ? "" : ", ") + std::string(r.name);
    }
    return fail(
        Error::usage("unknown kind of column '" + printable(name, 40) + "'; known: " + all));
}

const Column* Group::find(Role role) const {
    for (const Column& c : columns)
        if (c.role == role && !c.samples.empty()) return &c;
    return nullptr;
}

namespace leak_parts {

Group& TableBuilder::group(const std::string& name) {
    auto it = index_.find(name);
    if (it != index_.end()) return table.groups[it->second];
    if (table.groups.size() >= ReadLimits::kGroups) return table.groups.back();
    index_[name] = table.groups.size();
    table.groups.push_back({});
    table.groups.back().name = name;
    return table.groups.back();
}

Column* TableBuilder::column(const std::string& group_name, const std::string& name,
                             Meaning meaning) {
    Group& g = group(group_name);
    for (Column& c : g.columns)
        if (c.name == name) return &c;
    if (g.columns.size() >= ReadLimits::kColumns) return nullptr;
    if (auto mapped = options_.column_map.find(name); mapped != options_.column_map.end())
        meaning.role = mapped->second;
    g.columns.push_back({name, meaning.role, meaning.scale, "", {}});
    return &g.columns.back();
}

void TableBuilder::add(Column& column, double t, double value, double written_scale) {
    if (!std::isfinite(t) || !std::isfinite(value) || std::fabs(value) > 1e18) return;
    // A unit in the cell wins over the column's; values are kept in the column's unit until
    // finish().
    if (written_scale > 0) {
        if (column.scale <= 0) column.scale = written_scale;
        value *= written_scale / column.scale;
    }
    if (column.samples.size() >= ReadLimits::kSamples) {
        for (std::size_t i = 0; 2 * i < column.samples.size(); ++i)
            column.samples[i] = column.samples[2 * i];
        column.samples.resize(column.samples.size() / 2);
    }
    column.samples.push_back({t, value});
}

double TableBuilder::steady_time(const std::string& group_name, double t, bool clock_only) {
    Clock& clock = clocks_[group_name];
    if (clocks_.size() > 4 * ReadLimits::kGroups) return t;
    const double now = t + clock.offset;
    if (clock.last > -1e299 && now < clock.last) {
        if (clock_only && clock.last - now > 43200) {
            clock.offset += 86400;  // past midnight
        } else if (!clock_only && t < 1e8 && clock.last - clock.offset > t + 1 &&
                   t < 0.5 * (clock.last - clock.offset)) {
            // Seconds since a start that began anew: the process was restarted.
            clock.offset = clock.last + 1 - t;
            group(group_name).restarts_s.push_back(t + clock.offset);
        }
    }
    clock.last = std::max(clock.last, t + clock.offset);
    return t + clock.offset;
}

void TableBuilder::pid(const std::string& group_name, double t, const std::string& pid) {
    Clock& clock = clocks_[group_name];
    if (!clock.pid.empty() && clock.pid != pid && group(group_name).restarts_s.size() < 1000)
        group(group_name).restarts_s.push_back(t);
    clock.pid = pid;
}

SampleTable TableBuilder::finish(std::string format) {
    table.format = std::move(format);
    for (Group& g : table.groups) {
        for (Column& c : g.columns) {
            guess_unit(c);
            if (!c.unit_note.empty()) table.notes.push_back(c.unit_note);
            const double scale = is_memory(c.role) && c.scale > 0 ? c.scale : 1.0;
            for (auto& s : c.samples) s.value *= scale;
            mend_units(c, table.notes);
        }
        // used = total - free when only those are given
        if (g.find(Role::device_used) == nullptr && g.find(Role::device_free) != nullptr &&
            g.find(Role::device_total) != nullptr) {
            Column used{"total - free", Role::device_used, 1, "", {}};
            const double total = g.find(Role::device_total)->samples.back().value;
            for (const auto& s : g.find(Role::device_free)->samples)
                used.samples.push_back({s.t_s, total - s.value});
            g.columns.push_back(std::move(used));
        }
    }
    return std::move(table);
}

}  // namespace leak_parts

Result<SampleTable> read_samples(std::string_view text, const std::string& name,
                                 const ReadOptions& options) {
    if (text.size() >= 3 && text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
    const std::string_view start = trim(text.substr(0, 4096));
    if (start.empty()) return fail(Error::parse(name + ": the file is empty"));
    if (start.front() == '{' && start.find("\"resultType\"") != std::string_view::npos)
        return read_prometheus(text, name, options);
    if (start.front() == '{' && start.find("\"status\"") != std::string_view::npos &&
        start.find("\"data\"") != std::string_view::npos)
        return read_prometheus(text, name, options);
    if (start.front() == '[' && start.find("\"metric\"") != std::string_view::npos)
        return read_prometheus(text, name, options);
    // A header has a separator and no '=' or '{' in its first line.
    std::string_view rest = text, line;
    while (next_line(rest, line) && (trim(line).empty() || trim(line).front() == '#')) {
    }
    const bool separated = line.find_first_of(",;\t") != std::string_view::npos;
    if (separated && line.find('{') == std::string_view::npos &&
        line.find('=') == std::string_view::npos && line.find(": ") == std::string_view::npos)
        return read_csv(text, name, options);
    return read_lines(text, name, options);
}

}  // namespace oomlab::field
