// The three steps of reading a config.json. Private to this room.
#pragma once

#include "labs/shapes/config_fields.hpp"
#include "labs/shapes/model_shape.hpp"

namespace oomlab::config {

// Experts, latent attention, linear and state-space dimensions; then layer by layer.
void read_experts(ModelShape& shape, Fields& fields);
void read_latent_attention(ModelShape& shape, Fields& fields);
void read_layers(ModelShape& shape, Fields& fields);
void read_quantization(ModelShape& shape, const Fields& fields);

}  // namespace oomlab::config
