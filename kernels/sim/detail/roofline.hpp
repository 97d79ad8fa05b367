// The virtual clock: work is collected, then takes as long as the slower of its two halves.
//
// A step's ops overlap perfectly: time = max(operations / (peak * share), bytes / (peak * share)),
// and every step costs a fixed overhead besides (launches, scheduling, sampling). Exact to repeat,
// since nothing is measured.
#pragma once

#include <algorithm>

#include "kernels/device/device.hpp"

namespace oomlab::sim {

class Roofline {
  public:
    explicit Roofline(const DeviceProps& props) : props_(props) {}

    double now_s() const { return now_s_; }
    void wait_until_s(double when) { now_s_ = std::max(now_s_, when); }
    void spend_s(double seconds) { now_s_ += seconds; }

    void add(const OpCost& cost) {
        (cost.eight_bit ? ops_8_ : flops_16_) += cost.flops;
        bytes_ += cost.bytes;
        ++issued_;
    }
    // Work issued so far, and how much of it is done: events are marks on this count.
    u64 issued() const { return issued_; }
    u64 completed() const { return completed_; }

    // Runs what is outstanding.
    void drain() {
        now_s_ +=
            std::max(compute_s(), time_s(bytes_, props_.peak_bytes_per_s, props_.bandwidth_share));
        flops_16_ = ops_8_ = bytes_ = 0;
        completed_ = issued_;
    }

  private:
    static double time_s(double amount, double peak, double share) {
        return peak > 0 && share > 0 ? amount / (peak * share) : 0;
    }
    double compute_s() const {
        // A chip without an 8-bit peak does such products at the 16-bit one.
        const double peak_8 = props_.peak_ops_8 > 0 ? props_.peak_ops_8 : props_.peak_flops_16;
        return time_s(flops_16_, props_.peak_flops_16, props_.flops_share) +
               time_s(ops_8_, peak_8, props_.flops_share);
    }

    const DeviceProps& props_;
    double now_s_ = 0;
    double flops_16_ = 0, ops_8_ = 0, bytes_ = 0;
    u64 issued_ = 0, completed_ = 0;
};

}  // namespace oomlab::sim
