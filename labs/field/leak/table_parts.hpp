// The readers of sample_table.cpp. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "labs/field/leak/sample_table.hpp"

namespace oomlab::field::leak_parts {

// "memory.used [MiB]" -> device_used, 2^20. The role none means: not recognised.
struct Meaning {
    Role role = Role::none;
    double scale = 0;
};
Meaning meaning_of(std::string_view column_name);

// "1234", "1,234", "1234 MiB", "12.5GiB", "1.2e9"; the unit, when written, lands in `scale`.
std::optional<double> read_value(std::string_view text, double* scale);

// Seconds since 1970 or since the start: ISO 8601, nvidia-smi's form, epoch in s, ms, us or ns,
// "HH:MM:SS". `clock_only` is set for the last.
std::optional<double> read_time(std::string_view text, bool* clock_only);

std::string lower(std::string_view text);
std::string_view trim(std::string_view text);
std::string printable(std::string_view text, std::size_t limit = 80);

// Rows arrive in any order of groups; builds groups, follows clocks that go back, thins when long.
class TableBuilder {
  public:
    explicit TableBuilder(const ReadOptions& options) : options_(options) {}
    Column* column(const std::string& group, const std::string& name, Meaning meaning);
    void add(Column& column, double t, double value, double written_scale);
    // Remembers restarts of a group: a clock or a counter that went back, another pid.
    double steady_time(const std::string& group, double t, bool clock_only);
    void pid(const std::string& group, double t, const std::string& pid);
    SampleTable finish(std::string format);
    SampleTable table;

  private:
    struct Clock {
        double last = -1e300, offset = 0;
        std::string pid;
    };
    Group& group(const std::string& name);
    const ReadOptions& options_;
    std::map<std::string, std::size_t> index_;
    std::map<std::string, Clock> clocks_;
};

Result<SampleTable> read_csv(std::string_view text, const std::string& name,
                             const ReadOptions& options);
Result<SampleTable> read_prometheus(std::string_view text, const std::string& name,
                                    const ReadOptions& options);
Result<SampleTable> read_lines(std::string_view text, const std::string& name,
                               const ReadOptions& options);

// Splits off the next line, without its CR; false at the end.
bool next_line(std::string_view& rest, std::string_view& line);

}  // namespace oomlab::field::leak_parts
