#include <algorithm>
#include <utility>

#include "kernels/sim/detail/chip.hpp"

namespace oomlab::sim {
namespace {

constexpr double kSecondsPerHour = 3600;

DeviceProps opened(const SimProfile& profile) {
    DeviceProps props = profile.props;
    props.simulated = true;
    props.computes = profile.backed;
    OOMLAB_CHECK(props.total_bytes > 0);
    return props;
}

}  // namespace

Chip::Chip(const SimProfile& given)
    : profile(given),
      props(opened(given)),
      addresses(props.granularity_bytes, profile.backed),
      clock(props) {}

u64 Chip::own_bytes() const {
    return addresses.used_bytes() + graph_bytes + outside_bytes +
           (has_context ? profile.context_bytes : 0);
}

u64 Chip::tenants_bytes() const {
    const double now_s = clock.now_s();
    u64 wanted = 0;
    for (const SimTenant& tenant : profile.tenants) {
        if (now_s < tenant.from_s || now_s >= tenant.until_s) continue;
        const double grown =
            tenant.grows_bytes_per_hour * (now_s - tenant.from_s) / kSecondsPerHour;
        const double bytes = std::clamp(static_cast<double>(tenant.bytes) + grown, 0.0,
                                        static_cast<double>(props.total_bytes));
        wanted += round_down(static_cast<u64>(bytes), props.granularity_bytes);
    }
    // A tenant that asks for more than there is gets its own out of memory, not ours.
    return std::min(wanted, props.total_bytes - std::min(own_bytes(), props.total_bytes));
}

MemInfo Chip::mem_info() const {
    const u64 own = own_bytes();
    const u64 others = tenants_bytes();
    MemInfo info{.total_bytes = props.total_bytes,
                 .free_bytes = checked_sub(props.total_bytes, own + others),
                 .other_processes_bytes = others};
    if (props.memory_limit_bytes != 0 && props.memory_limit_bytes < props.total_bytes) {
        info.total_bytes = props.memory_limit_bytes;
        info.free_bytes =
            std::min(info.free_bytes, info.total_bytes - std::min(own, info.total_bytes));
    }
    return info;
}

DeviceResult<void> Chip::expect_room(DeviceCall call, u64 bytes) {
    if (bytes <= mem_info().free_bytes) return {};
    return failure(DeviceErrc::memory_allocation, call, bytes);
}

DeviceResult<void> Chip::create_context() {
    if (sticky_) return fail(*sticky_);
    if (has_context) return {};
    OOMLAB_TRY_VOID(expect_room(DeviceCall::create_context, profile.context_bytes));
    has_context = true;
    return {};
}

DeviceResult<void> Chip::enter(DeviceCall call) {
    if (sticky_) return fail(*sticky_);
    if (has_context) return {};
    if (expect_room(call, profile.context_bytes)) {
        has_context = true;
        return {};
    }
    return failure(DeviceErrc::memory_allocation, call, profile.context_bytes);
}

void Chip::poison(DeviceError error) {
    if (!sticky_) sticky_ = std::move(error);
}

DeviceResult<void> Chip::outside_capture(DeviceCall call) {
    if (!capture) return {};
    capture->invalidated = true;
    return failure(DeviceErrc::stream_capture_unsupported, call);
}

}  // namespace oomlab::sim
