// Files as strangers' collectors write them, from generated series.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "tests/diagnosis/series.hpp"

namespace oomlab::test {

struct FileSpec {
    SeriesSpec allocated, reserved_gap, beside,
        host;  // reserved = allocated + gap, device = reserved + beside
    double total = 25250627584.0;
    u64 seed = 1;
};

struct Rows {
    std::vector<double> t, allocated, reserved, device, host;
};

inline FileSpec usual_file(u64 seed) {
    FileSpec f;
    f.seed = seed;
    f.allocated.base = 16e9;
    f.reserved_gap.shape = "quantised";
    f.reserved_gap.base = 900e6;
    f.reserved_gap.noise = 10e6;
    f.beside.base = 700e6;
    f.beside.noise = 0.2e6;
    f.host.base = 6e9;
    return f;
}

inline Rows make_rows(const FileSpec& f) {
    Rows r;
    Prng prng(f.seed);
    Prng a = prng.fork("allocated"), g = prng.fork("gap"), b = prng.fork("beside"),
         h = prng.fork("host");
    const auto allocated = make_series(f.allocated, a), gap = make_series(f.reserved_gap, g),
               beside = make_series(f.beside, b), host = make_series(f.host, h);
    for (std::size_t i = 0; i < allocated.size() && i < gap.size(); ++i) {
        r.t.push_back(1.7e9 + allocated[i].t_s);
        r.allocated.push_back(allocated[i].value);
        r.reserved.push_back(allocated[i].value + std::fabs(gap[i].value));
        r.device.push_back(r.reserved.back() + beside[i].value);
        r.host.push_back(host[i].value);
    }
    return r;
}

inline std::string csv_file(const Rows& r, double total) {
    std::string out =
        "timestamp,memory_allocated_bytes,memory_reserved_bytes,device_used_bytes,memory_total_"
        "bytes,rss_bytes\n";
    for (std::size_t i = 0; i < r.t.size(); ++i)
        out += fmt::format("{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f}\n", r.t[i], r.allocated[i],
                           r.reserved[i], r.device[i], total, r.host[i]);
    return out;
}

inline std::string smi_file(const Rows& r, double total, int gpus) {
    std::string out = "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n";
    for (std::size_t i = 0; i < r.t.size(); ++i) {
        const long s = static_cast<long>(r.t[i] - 1.7e9);
        for (int g = 0; g < gpus; ++g)
            out += fmt::format(
                "2026/05/{:02} {:02}:{:02}:{:02}.{:03}, {}, NVIDIA L4, {:.0f} MiB, {:.0f} MiB\n",
                1 + s / 86400, s / 3600 % 24, s / 60 % 60, s % 60, 123, g,
                (g == 0 ? r.device[i] : r.device[0]) / 1048576, total / 1048576);
    }
    return out;
}

inline std::string prometheus_file(const Rows& r, const char* metric, double scale) {
    std::string out = fmt::format(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{{\"metric\":{{"
        "\"__name__\":\"{}\",\"gpu\":\"0\"}},\"values\":[",
        metric);
    for (std::size_t i = 0; i < r.t.size(); ++i)
        out += fmt::format("{}[{:.3f},\"{:.0f}\"]", i > 0 ? "," : "", r.t[i], r.device[i] / scale);
    return out + "]}]}}";
}

inline std::string stats_file(const Rows& r) {
    std::string out;
    for (std::size_t i = 0; i < r.t.size(); ++i)
        out += fmt::format(
            "{{\"time\": {:.0f}, \"allocated_bytes.all.current\": {:.0f}, "
            "\"allocated_bytes.all.peak\": 99999999999, \"reserved_bytes.all.current\": {:.0f}, "
            "\"num_alloc_retries\": 0}}\n",
            r.t[i], r.allocated[i], r.reserved[i]);
    return out;
}

}  // namespace oomlab::test
