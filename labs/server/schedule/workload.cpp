#include "labs/server/schedule/workload.hpp"

#include <algorithm>
#include <cmath>

namespace oomlab::server {

Workload::Workload(const Scenario::Workload& spec)
    : spec_(spec),
      times_(Prng(spec.seed).fork("arrivals")),
      prompts_(Prng(spec.seed).fork("prompt_tokens")),
      outputs_(Prng(spec.seed).fork("output_tokens")),
      cancels_(Prng(spec.seed).fork("cancellations")) {
    for (const PlannedRequest& p : spec.requests) {
        for (u64 i = 0; i < p.count; ++i) {
            PlannedRequest one = p;
            one.at_s = p.at_s + static_cast<double>(i) * p.every_s;
            planned_.push_back(one);
        }
    }
    std::stable_sort(planned_.begin(), planned_.end(),
                     [](const PlannedRequest& a, const PlannedRequest& b) { return a.at_s < b.at_s; });
    for (const RatePoint& p : spec_.arrival_rate) rate_max_ = std::max(rate_max_, p.rate);
    if (spec_.concurrency != 0) {
        loop_due_.assign(spec_.concurrency, 0.0);
    } else if (rate_max_ > 0) {
        stream_next_ = next_stream_time();
    }
    advance();
}

double Workload::rate_at(double t) const {
    const auto& points = spec_.arrival_rate;
    if (points.size() == 1) return points.front().rate;
    if (spec_.rate_repeat_s > 0) t = std::fmod(t, spec_.rate_repeat_s);
    if (t <= points.front().at_s) return points.front().rate;
    for (std::size_t i = 1; i < points.size(); ++i) {
        if (t > points[i].at_s) continue;
        const double span = points[i].at_s - points[i - 1].at_s;
        if (span <= 0) return points[i].rate;
        const double f = (t - points[i - 1].at_s) / span;
        return points[i - 1].rate + f * (points[i].rate - points[i - 1].rate);
    }
    return points.back().rate;
}

// Poisson by thinning; even by stepping along the rate.
std::optional<double> Workload::next_stream_time() {
    while (stream_clock_ <= spec_.duration_s) {
        if (spec_.poisson) {
            stream_clock_ += times_.exponential(rate_max_);
            if (stream_clock_ > spec_.duration_s) break;
            if (times_.uniform() * rate_max_ < rate_at(stream_clock_)) return stream_clock_;
        } else {
            const double rate = rate_at(stream_clock_);
            stream_clock_ += rate > 0 ? 1 / rate : 1.0;
            if (stream_clock_ > spec_.duration_s) break;
            if (rate > 0) return stream_clock_;
        }
    }
    return std::nullopt;
}

u64 Workload::draw(const TokenDist& dist, Prng& prng) const {
    switch (dist.kind) {
        case TokenDist::Kind::fixed: return static_cast<u64>(std::max(1.0, dist.value));
        case TokenDist::Kind::uniform:
            return prng.between(static_cast<u64>(dist.low), static_cast<u64>(dist.high));
        case TokenDist::Kind::lognormal: {
            double v = prng.lognormal(dist.mean, dist.cv);
            if (dist.high > 0) v = std::min(v, dist.high);
            return static_cast<u64>(std::max(std::max(1.0, dist.low), std::round(v)));
        }
        case TokenDist::Kind::mix: {
            double sum = 0;
            for (const auto& p : dist.parts) sum += p.share;
            double at = prng.uniform() * sum;
            for (const auto& p : dist.parts) {
                if (at < p.share) return draw(p.tokens, prng);
                at -= p.share;
            }
            return draw(dist.parts.back().tokens, prng);
        }
    }
    return 1;
}

void Workload::advance() {
    next_.reset();
    const double planned = planned_at_ < planned_.size() ? planned_[planned_at_].at_s : 1e300;
    double stream = stream_next_.value_or(1e300);
    if (spec_.concurrency != 0) {
        stream = loop_at_ < loop_due_.size() ? loop_due_[loop_at_] : 1e300;
        if (stream > spec_.duration_s) stream = 1e300;
    }
    if (planned >= 1e300 && stream >= 1e300) return;
    Arrival a;
    a.prefix_tokens = spec_.shared_prefix;
    a.prefix_group = spec_.shared_prefix > 0 ? 1 : 0;
    if (planned <= stream) {
        const PlannedRequest& p = planned_[planned_at_++];
        a.at_s = p.at_s;
        a.prompt_tokens = p.prompt_tokens;
        a.output_tokens = p.output_tokens;
        a.n = p.n;
        if (p.cancel_after_s >= 0) a.cancel_at_s = p.at_s + p.cancel_after_s;
        if (p.prefix != 0) a.prefix_group = p.prefix + 1;
        if (p.prefix != 0 && a.prefix_tokens == 0) a.prefix_tokens = p.prompt_tokens;
    } else {
        a.at_s = stream;
        a.prompt_tokens = draw(spec_.prompt_tokens, prompts_);
        a.output_tokens = draw(spec_.output_tokens, outputs_);
        a.n = spec_.n;
        const bool cancelled = spec_.cancel_share > 0 && cancels_.chance(spec_.cancel_share);
        if (cancelled) a.cancel_at_s = stream + spec_.cancel_after_s;
        if (spec_.concurrency != 0) ++loop_at_;
        else stream_next_ = next_stream_time();
    }
    next_ = a;
}

Arrival Workload::pop() {
    Arrival a = *next_;
    advance();
    return a;
}

void Workload::finished(double now_s) {
    if (spec_.concurrency == 0) return;
    loop_due_.push_back(now_s);
    if (!next_) advance();
}

void Workload::set_rate(double per_second, double now_s) {
    spec_.arrival_rate = {{0, per_second}};
    rate_max_ = per_second;
    stream_clock_ = std::max(stream_clock_, now_s);
    if (spec_.concurrency == 0 && per_second > 0 && !stream_next_) {
        stream_next_ = next_stream_time();
        if (!next_) advance();
    }
}

u64 Workload::tokens_max() const {
    double most = 0;
    for (const PlannedRequest& p : planned_) most = std::max(most, static_cast<double>(p.prompt_tokens));
    const auto of = [](const auto& self, const TokenDist& d) -> double {
        double m = std::max(d.value, d.high);
        for (const auto& p : d.parts) m = std::max(m, self(self, p.tokens));
        return m;
    };
    return static_cast<u64>(std::max(most, of(of, spec_.prompt_tokens)));
}

}  // namespace oomlab::server
