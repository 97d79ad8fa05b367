#include "labs/server/model/weights.hpp"

#include <cmath>

#include "kernels/base/prng.hpp"

namespace oomlab::server {

Weights::Weights(const ServerConfig& config, Device& device, Ledger& ledger)
    : config_(config), device_(device), ledger_(ledger),
      plan_(weight_tensors(config.shape, config.loaded_tp)) {
    for (const WeightTensor& t : plan_) total_ += t.bytes;
}

Weights::~Weights() {
    for (std::size_t i = tensors_.size(); i-- > 0;) ledger_.free(tensors_[i]);
}

Outcome<bool> Weights::load_some(u64 bytes) {
    const u64 until = loaded_ + bytes;
    while (next_ < plan_.size() && loaded_ < until) {
        const WeightTensor& t = plan_[next_];
        OOMLAB_TRY(tensor, ledger_.alloc(t.bytes, Owner::weights));
        tensors_.push_back(tensor);
        if (device_.props().computes) {
            by_name_[t.name] = tensor.address;
            FillArgs fill;
            fill.out = tensor.address;
            fill.type = config_.shape.dtype;
            fill.elements = t.bytes / dtype_bytes(fill.type);
            fill.seed = stable_hash(t.name);
            // Norms of about one, projections of about 1/sqrt(width): activations keep their size.
            fill.scale = t.rows <= 1 || t.cols <= 1 ? 1.0f : std::sqrt(3.0f / static_cast<float>(t.cols));
            OOMLAB_DEVICE_TRY(device_.ops().fill(fill));
        }
        loaded_ += t.bytes;
        ++next_;
    }
    return next_ == plan_.size();
}

u64 Weights::address(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? 0 : found->second;
}

}  // namespace oomlab::server
