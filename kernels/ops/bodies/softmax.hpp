// Softmax in one pass: a running maximum and sum, and what that means for a weighted sum that is
// being accumulated beside them. Positions are taken in order, so the result depends on the scores
// and their order alone: not on how a prompt was cut into chunks, nor on the size of a KV block.
#pragma once

#include <cmath>

#include "kernels/ops/bodies/number.hpp"

namespace oomlab::body {

struct OnlineSoftmax {
    float max = -INFINITY;
    float sum = 0.0f;
};

// What to multiply the accumulated sum by before adding, and the new element's weight.
struct SoftmaxStep {
    float keep;
    float weight;
};

OOMLAB_BOTH inline SoftmaxStep softmax_step(OnlineSoftmax& state, float score) {
    SoftmaxStep step{1.0f, 1.0f};
    if (score <= state.max) {
        step.weight = expf(score - state.max);
    } else {
        step.keep = expf(state.max - score);   // 0 at the first score
        state.max = score;
    }
    state.sum = state.sum * step.keep + step.weight;
    return step;
}

// Joins the state of a later range of positions to that of an earlier one. Returns the factors of
// the two accumulated sums: {keep of the earlier, weight of the later}. An empty range has sum 0.
OOMLAB_BOTH inline SoftmaxStep softmax_join(OnlineSoftmax& earlier, const OnlineSoftmax& later) {
    if (later.sum == 0.0f) return {1.0f, 0.0f};
    if (earlier.sum == 0.0f) {
        earlier = later;
        return {0.0f, 1.0f};
    }
    const float max = later.max > earlier.max ? later.max : earlier.max;
    const SoftmaxStep factors{expf(earlier.max - max), expf(later.max - max)};
    earlier.max = max;
    earlier.sum = earlier.sum * factors.keep + later.sum * factors.weight;
    return factors;
}

}  // namespace oomlab::body
