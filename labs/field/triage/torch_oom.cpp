// The out-of-memory sentence of PyTorch's allocator, in every form it has had.
#include <re2/re2.h>

#include <cmath>

#include "labs/field/triage/facts.hpp"

namespace oomlab::triage {
namespace {

constexpr double kGiBd = 1024.0 * 1024 * 1024;
// NVML's "not available" under Windows, 2^64-1 bytes, prints as 17179869184.00 GiB.
constexpr double kNotAvailable = 1e18;

#define BYTES R"(([0-9][0-9,.]*\s?(?:bytes|[KMGT]i?B)))"

struct Patterns {
    RE2::Options options = [] {
        RE2::Options o;
        o.set_case_sensitive(false);
        o.set_log_errors(false);
        return o;
    }();
    RE2 asked{R"(tried to allocate )" BYTES, options};
    RE2 above{R"(more than 1EB)", options};
    RE2 capacity{R"(total capac?i?ty of )" BYTES R"(\s+of which )" BYTES R"( is free)", options};
    RE2 total_only{R"(total capac?i?ty of )" BYTES, options};
    RE2 old_total{R"(\(GPU [0-9]+; )" BYTES R"( total capacity)", options};
    RE2 old_allocated{BYTES R"( already allocated)", options};
    RE2 old_free{BYTES R"( free[;)])", options};
    RE2 old_cached{BYTES R"( cached\))", options};
    RE2 old_reserved{BYTES R"( reserved in total)", options};
    RE2 allowed{BYTES R"( allowed;)", options};
    RE2 process{R"(process [0-9]+ has )" BYTES R"( memory in use)", options};
    RE2 self{R"(this process has )" BYTES R"( memory in use)", options};
    RE2 allocated{R"(allocated memory )" BYTES R"( is allocated by pytorch)", options};
    RE2 pools{R"(with )" BYTES R"( allocated in private pools)", options};
    RE2 unallocated{R"(and )" BYTES R"( is reserved by pytorch but unallocated)", options};
    RE2 rejected{R"(requested size:? )" BYTES, options};
    RE2 async_allocated{R"(currently allocated\s*:\s*)" BYTES, options};
    RE2 async_asked{R"(requested\s*:\s*)" BYTES, options};
    RE2 async_total{R"(device limit\s*:\s*)" BYTES, options};
    RE2 async_free{R"(free \(according to cuda\)\s*:\s*)" BYTES, options};
    RE2 async_cap{R"(user-supplied memory fraction\)(?s:.{0,600}?)\s: )" BYTES, options};
    RE2 mps{R"(mps allocated: )" BYTES R"(, other allocations: )" BYTES R"(, max allowed: )" BYTES,
            options};
};

const Patterns& patterns() {
    static const Patterns kPatterns;
    return kPatterns;
}

void take(std::string_view text, const RE2& re, std::optional<double>& into) {
    std::string found;
    if (into || !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), re, &found)) return;
    const auto bytes = size_bytes(found);
    if (bytes && *bytes < kNotAvailable) into = bytes;
}

bool contains(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

}  // namespace

TorchOom parse_torch_oom(std::string_view line, std::string_view lookahead) {
    const Patterns& p = patterns();
    TorchOom oom;
    const bool async = contains(line, "would exceed allowed memory");
    // A wrapped message goes on for a few lines; a whole one must not borrow its neighbour's
    // figures.
    std::string text(line);
    const bool whole = contains(line, "unallocated") || contains(line, "reserved in total") ||
                       contains(line, "cached)") || contains(line, "Requested size");
    if (!whole) {
        const std::string_view more = lookahead.substr(0, async ? 1600 : 900);
        const auto stop = more.find("ried to allocate");
        text.push_back(' ');
        for (const char c : more.substr(0, stop)) text.push_back(c == '\n' || c == '\r' ? ' ' : c);
    }
    const re2::StringPiece piece(text);
    take(text, p.asked, oom.asked);
    oom.above_1eb = RE2::PartialMatch(piece, p.above);
    std::string total, free;
    if (RE2::PartialMatch(piece, p.capacity, &total, &free)) {
        oom.total = size_bytes(total);
        oom.free = size_bytes(free);
        oom.form = contains(text, "capacty")                   ? 4
                   : contains(text, "PYTORCH_CUDA_ALLOC_CONF") ? 5
                                                               : 6;
        if (contains(text, "docs.pytorch.org")) oom.form = 7;
    }
    if (RE2::PartialMatch(piece, p.old_total)) {
        take(text, p.old_total, oom.total);
        take(text, p.old_allocated, oom.allocated);
        take(text, p.old_free, oom.free);
        std::optional<double> cached, reserved;
        take(text, p.old_cached, cached);
        take(text, p.old_reserved, reserved);
        // V1 prints what is held but unused; from V2 on the total that is reserved.
        if (cached) oom.unallocated = cached, oom.form = 1;
        if (reserved) {
            oom.form = contains(text, "max_split_size_mb") ? 3 : 2;
            if (oom.allocated) oom.unallocated = std::max(0.0, *reserved - *oom.allocated);
        }
    }
    take(text, p.total_only, oom.total);
    take(text, p.allowed, oom.allowed);
    take(text, p.self, oom.this_process);
    take(text, p.allocated, oom.allocated);
    take(text, p.pools, oom.private_pools);
    take(text, p.unallocated, oom.unallocated);
    re2::StringPiece rest(text);
    std::string found;
    while (oom.processes.size() < 64 && RE2::FindAndConsume(&rest, p.process, &found)) {
        const auto bytes = size_bytes(found);
        if (bytes && *bytes < kNotAvailable) oom.processes.push_back(*bytes);
    }
    if (contains(text, "preemptively rejected")) {
        oom.form = 8;
        oom.preemptive = true;
        take(text, p.rejected, oom.asked);
    }
    if (oom.above_1eb) oom.form = 9;
    if (async) {
        oom.form = 10;
        take(text, p.async_allocated, oom.allocated);
        take(text, p.async_asked, oom.asked);
        take(text, p.async_total, oom.total);
        take(text, p.async_free, oom.free);
        take(text, p.async_cap, oom.allowed);
    }
    std::string a, b, c;
    if (RE2::PartialMatch(piece, p.mps, &a, &b, &c)) {
        oom.allocated = size_bytes(a);
        oom.total = size_bytes(c);
    }
    if (contains(text, "HIP out of memory")) oom.form = 11;
    if (oom.form < 0 && contains(text, "cuda runtime error")) oom.form = 0;
    // A fraction of 1.0 and more is no cap.
    if (oom.allowed && oom.total && *oom.allowed >= *oom.total) oom.allowed.reset();
    return oom;
}

std::optional<double> TorchOom::others() const {
    if (!total || !free) return std::nullopt;
    const double used = std::max(0.0, *total - *free);
    const double torch = allocated.value_or(0) + unallocated.value_or(0);
    if (this_process && *this_process > 0) {
        double sum = 0;
        for (const double m : processes) sum += m;
        return std::max(sum, used - std::max(*this_process, torch));
    }
    if (!processes.empty()) {
        // Inside a container our own process is listed by a strange number: it is the one whose
        // memory is nearest above what PyTorch says it holds.
        std::size_t own = processes.size();
        double best = 1e300;
        for (std::size_t i = 0; i < processes.size(); ++i) {
            const double context = processes[i] - torch;
            if (context > -0.05 * kGiBd && context < best) best = context, own = i;
        }
        double sum = 0;
        for (std::size_t i = 0; i < processes.size(); ++i)
            if (i != own || best > 0.25 * *total) sum += processes[i];
        return sum;
    }
    if (!allocated) return std::nullopt;
    // No process clause: what is used beyond PyTorch's share and a context.
    const double rest = used - torch - 1.0 * kGiBd;
    return rest > 0 ? rest : 0;
}

}  // namespace oomlab::triage
