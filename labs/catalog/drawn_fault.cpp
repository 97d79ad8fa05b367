#include "labs/catalog/drawn_fault.hpp"

#include "kernels/base/prng.hpp"

namespace oomlab {

// What the hour's faults come to when a scenario draws one: sizes that end inside the hour, or show
// at least eight standard deviations of growth, on a 22 GiB card at 2 requests a second
// (scenarios.md section 5); larger cards scale by their spare memory.
FaultSpec draw_fault(const FaultSpec& drawn, u64 hidden_size) {
    Prng prng = Prng(drawn.seed).fork("drawn");
    FaultSpec f;
    f.from_s = drawn.from_s;
    f.until_s = drawn.until_s;
    f.on = "client_disconnect";
    const u64 scale = hidden_size >= 8192 ? 2 : 1;
    static constexpr const char* kKinds[] = {
        "healthy", "request_retained", "cache_without_eviction", "cleanup_skipped", "graph_per_request",
        "inference_mode_missing", "fragmenting_sizes", "outside_growth"};
    f.kind = kKinds[prng.below(std::size(kKinds))];
    const double vary = 0.95 + 0.1 * prng.uniform();
    if (f.kind == "request_retained") f.bytes = static_cast<u64>(384.0 * 1024.0 * vary) * scale;
    if (f.kind == "cache_without_eviction") f.bytes = static_cast<u64>(360.0 * 1024.0 * vary) * scale;
    if (f.kind == "graph_per_request") {
        f.bytes = 4 * kMiB * scale;
        f.share = 0.09 * vary;
    }
    if (f.kind == "inference_mode_missing") f.share = 0.7 * vary;
    if (f.kind == "fragmenting_sizes") f.bytes = 768 * kMiB * scale;
    if (f.kind == "outside_growth") f.bytes_per_hour = static_cast<u64>(2448.0 * kMiB * vary) * scale;
    return f;
}

}  // namespace oomlab
