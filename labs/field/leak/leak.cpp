#include "labs/field/leak/leak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace oomlab::field {
namespace {

using diagnosis::find_trend;
using diagnosis::Trend;
using diagnosis::TrendKind;
using diagnosis::TrendOptions;
using diagnosis::TrendSample;

using Samples = std::vector<TrendSample>;

// a - b at the times of a, with b's value of the same time or the last before.
Samples difference(const Samples& a, const Samples& b) {
    Samples out;
    std::size_t j = 0;
    for (const TrendSample& s : a) {
        while (j + 1 < b.size() && b[j + 1].t_s <= s.t_s) ++j;
        if (!b.empty() && std::fabs(b[j].t_s - s.t_s) < 120)
            out.push_back({s.t_s, s.value - b[j].value});
    }
    return out;
}

struct Judge {
    GroupFinding& g;
    const TrendOptions& options;

    int add(const std::string& name, const std::string& kind, const Samples& samples,
            double quantum) {
        TrendOptions o = options;
        o.quantum = quantum;
        g.series.push_back({name, kind, find_trend(samples, o), samples});
        return static_cast<int>(g.series.size()) - 1;
    }
    int add(const Group& group, Role role, double quantum) {
        const Column* c = group.find(role);
        return c == nullptr ? -1 : add(c->name, role_name(role), c->samples, quantum);
    }
    bool rises(int i) const {
        return i >= 0 && g.series[static_cast<std::size_t>(i)].trend.rising();
    }
    bool unsure(int i) const {
        return i >= 0 &&
               g.series[static_cast<std::size_t>(i)].trend.kind == TrendKind::not_long_enough;
    }
    void decide(LeakVerdict verdict, int series, std::string where, std::string reason) {
        g.verdict = verdict;
        g.decisive = series;
        g.where = std::move(where);
        g.reason = std::move(reason);
    }
};

void until_limit(GroupFinding& g, const Group& group, const LeakOptions& options) {
    if (g.decisive < 0) return;
    const SeriesFinding& s = g.series[static_cast<std::size_t>(g.decisive)];
    const bool host = g.where == "host";
    const Column* limit = group.find(host ? Role::host_limit : Role::device_total);
    if (options.limit_bytes > 0)
        g.limit_bytes = options.limit_bytes, g.limit_source = "given";
    else if (limit != nullptr)
        g.limit_bytes = limit->samples.back().value, g.limit_source = limit->name;
    const auto last = [&](Role role) {
        const Column* c = group.find(role);
        return c != nullptr ? c->samples.back().value : 0.0;
    };
    // What counts against the card: the device's own figure when there is one.
    double now = s.samples.empty() ? 0 : s.samples.back().value;
    if (!host) {
        if (const double used = last(Role::device_used); used > 0)
            now = used;
        else if (const double reserved = last(Role::reserved); reserved > 0)
            now = reserved;
        // An allocation first fills what the cache already holds.
        if (s.kind == "allocated" && last(Role::reserved) > last(Role::allocated))
            now -= last(Role::reserved) - last(Role::allocated);
    }
    g.now_bytes = now;
    if (g.limit_bytes > 0)
        g.until_limit = diagnosis::time_to_limit(s.trend, now, g.limit_bytes);
    else if (s.trend.rising())
        g.ask_for.push_back(host ? "the memory limit (--limit, or a memory.max column) for the "
                                   "time until it is reached"
                                 : "the card's size (--gpu NAME or --limit SIZE, or a memory.total "
                                   "column) for the time until it is full");
}

void per_request(GroupFinding& g, const Group& group) {
    const Column* c = group.find(Role::requests);
    if (c == nullptr || g.decisive < 0 || c->samples.size() < 2) return;
    double done = 0, first = c->samples.front().t_s, last = first;
    for (std::size_t i = 1; i < c->samples.size(); ++i) {
        done += std::max(
            0.0, c->samples[i].value - c->samples[i - 1].value);  // a counter that restarts at 0
        last = std::max(last, c->samples[i].t_s);
    }
    const double hours = (last - first) / 3600;
    if (done > 0 && hours > 0)
        g.bytes_per_1000_requests =
            g.series[static_cast<std::size_t>(g.decisive)].trend.slope_per_hour / (done / hours) *
            1000;
}

GroupFinding judge(const Group& group, const LeakOptions& leak_options) {
    GroupFinding g;
    g.group = group.name;
    TrendOptions options;
    options.restarts_s = group.restarts_s;
    Judge j{g, options};
    constexpr double kSmall = 2.0 * 1048576, kLarge = 20.0 * 1048576;
    const int allocated = j.add(group, Role::allocated, kSmall),
              reserved = j.add(group, Role::reserved, kLarge);
    int gap = -1, beside = -1;
    const Column *a = group.find(Role::allocated), *r = group.find(Role::reserved),
                 *d = group.find(Role::device_used), *p = group.find(Role::process_used);
    if (a != nullptr && r != nullptr)
        gap = j.add("reserved - allocated", "gap", difference(r->samples, a->samples), kLarge);
    const int device = j.add(group, Role::device_used, kSmall),
              process = j.add(group, Role::process_used, kSmall);
    const Column* inside = r != nullptr ? r : a;
    const Column* outside = d != nullptr ? d : p;
    if (inside != nullptr && outside != nullptr)
        beside = j.add(outside->name + " - " + inside->name, "beside",
                       difference(outside->samples, inside->samples), kSmall);
    const int host = j.add(group, Role::host_used, kSmall);

    if (j.rises(allocated)) {
        j.decide(LeakVerdict::leak, allocated, "allocated",
                 "the floor of allocated memory rises: tensors are kept");
        if (j.rises(beside))
            g.notes.push_back("memory outside of the allocator grows as well: two causes");
    } else if (a != nullptr && (j.rises(gap) || j.rises(reserved))) {
        j.decide(
            LeakVerdict::fragmentation, j.rises(gap) ? gap : reserved, "reserved - allocated",
            "reserved memory rises while allocated does not: the allocator's cache is fragmenting");
        if (const Column* split = group.find(Role::inactive_split); split != nullptr)
            g.notes.push_back(
                find_trend(split->samples, options).rising()
                    ? "inactive split blocks rise with it, as fragmentation makes them"
                    : "inactive split blocks do not rise: look for unusual sizes, not for holes");
    } else if (j.rises(beside) || (inside != nullptr && (j.rises(device) || j.rises(process)))) {
        const int which = j.rises(beside) ? beside : j.rises(device) ? device : process;
        j.decide(LeakVerdict::outside, which, "outside of the allocator",
                 "the device's use rises while the allocator's figures do not: a library, graphs, "
                 "or another process");
        if (p == nullptr)
            g.ask_for.push_back(
                "nvidia-smi --query-compute-apps=pid,used_memory --format=csv -l 10: this process "
                "or another one?");
    } else if (p != nullptr && d != nullptr && j.rises(device) && !j.rises(process)) {
        j.decide(LeakVerdict::outside, device, "another process",
                 "the device's use rises while this process's does not");
    } else if (j.rises(process) || j.rises(device)) {
        j.decide(LeakVerdict::leak, j.rises(process) ? process : device, "device",
                 "the floor of used device memory rises; without allocated and reserved it cannot "
                 "be said whether tensors, fragments or a library grow");
        g.ask_for.push_back(
            "torch.cuda.memory_allocated() and memory_reserved() every 10 s: they tell a leak from "
            "fragmentation and from growth outside");
    } else if (a == nullptr && j.rises(reserved)) {
        j.decide(
            LeakVerdict::leak, reserved, "reserved",
            "reserved memory rises; without allocated a leak cannot be told from fragmentation");
        g.ask_for.push_back("torch.cuda.memory_allocated() beside memory_reserved()");
    } else if (j.rises(host)) {
        j.decide(LeakVerdict::leak, host, "host",
                 "the floor of host memory rises: this ends in a kill by the kernel, not in a CUDA "
                 "error");
    } else {
        int unsure = -1;
        for (int i = 0; i < static_cast<int>(g.series.size()); ++i)
            if (j.unsure(i) && g.series[static_cast<std::size_t>(i)].kind != "gap" &&
                g.series[static_cast<std::size_t>(i)].kind != "beside" && unsure < 0)
                unsure = i;
        if (unsure >= 0) {
            const Trend& t = g.series[static_cast<std::size_t>(unsure)].trend;
            j.decide(LeakVerdict::not_long_enough, unsure, "",
                     fmt::format("{}: {}; about {:.0f} more minutes are needed",
                                 g.series[static_cast<std::size_t>(unsure)].name, t.why,
                                 std::ceil(t.more_seconds_needed / 60)));
        } else {
            int main = allocated >= 0  ? allocated
                       : device >= 0   ? device
                       : process >= 0  ? process
                       : reserved >= 0 ? reserved
                                       : host;
            j.decide(LeakVerdict::flat, main, "",
                     main >= 0 ? g.series[static_cast<std::size_t>(main)].trend.why
                               : "no memory column with samples");
        }
    }
    if (host >= 0 && j.rises(host) && g.where != "host") g.notes.push_back("host memory rises too");
    for (const SeriesFinding& s : g.series)
        if (s.kind != "gap" && s.kind != "beside")
            for (double at : s.trend.level_changes_s)
                g.notes.push_back(
                    fmt::format("{}: the level changed {:.0f} minutes after the first sample",
                                s.name, (at - s.samples.front().t_s) / 60));
    until_limit(g, group, leak_options);
    per_request(g, group);
    return g;
}

int weight(const GroupFinding& g) {
    switch (g.verdict) {
        case LeakVerdict::leak:
            return 5;
        case LeakVerdict::fragmentation:
            return 4;
        case LeakVerdict::outside:
            return 3;
        case LeakVerdict::not_long_enough:
            return 2;
        case LeakVerdict::flat:
            return 1;
    }
    return 0;
}

}  // namespace

const char* leak_verdict_name(LeakVerdict v) {
    switch (v) {
        case LeakVerdict::leak:
            return "leak";
        case LeakVerdict::fragmentation:
            return "fragmentation";
        case LeakVerdict::outside:
            return "outside";
        case LeakVerdict::flat:
            return "flat";
        case LeakVerdict::not_long_enough:
            return "not_long_enough";
    }
    return "flat";
}

LeakReport find_leak(const SampleTable& table, const LeakOptions& options) {
    LeakReport report;
    report.format = table.format;
    report.rows = table.rows;
    report.bad_rows = table.bad_rows;
    report.notes = table.notes;
    for (const Group& group : table.groups) {
        GroupFinding g = judge(group, options);
        if (!g.series.empty()) report.groups.push_back(std::move(g));
    }
    if (report.groups.empty()) {
        GroupFinding none;
        none.verdict = LeakVerdict::not_long_enough;
        none.reason = "no memory column has samples";
        report.groups.push_back(std::move(none));
    }
    for (std::size_t i = 0; i < report.groups.size(); ++i)
        if (weight(report.groups[i]) > weight(report.groups[report.worst])) report.worst = i;
    return report;
}

}  // namespace oomlab::field
