// The weights on the device: tensor by tensor in the checkpoint's order, filled by seed where the
// chip computes, so that a model needs no download.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "labs/server/config.hpp"
#include "labs/server/memory/ledger.hpp"

namespace oomlab::server {

class Weights {
  public:
    Weights(const ServerConfig& config, Device& device, Ledger& ledger);
    ~Weights();

    // Allocates (and fills) the next tensors until about `bytes` more are loaded; true when all are.
    Outcome<bool> load_some(u64 bytes);
    u64 loaded_bytes() const { return loaded_; }
    u64 total_bytes() const { return total_; }
    // Address of a tensor by its checkpoint name, 0 when it does not exist.
    u64 address(std::string_view name) const;

  private:
    const ServerConfig& config_;
    Device& device_;
    Ledger& ledger_;
    std::vector<WeightTensor> plan_;
    std::vector<Tensor> tensors_;
    std::unordered_map<std::string, u64> by_name_;
    std::size_t next_ = 0;
    u64 loaded_ = 0, total_ = 0;
};

}  // namespace oomlab::server
