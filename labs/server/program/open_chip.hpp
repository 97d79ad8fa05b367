// Which chip this program serves on. Two programs, one for each: no program links both.
#pragma once

#include <memory>
#include <string>

#include "kernels/base/result.hpp"
#include "kernels/device/device.hpp"
#include "labs/catalog/scenario.hpp"
#include "labs/shapes/model_shape.hpp"

namespace oomlab::server {

// Opens the scenario's device (`name` overrides its own: "sim:h100-80gb", "sim:FILE", "cuda:0").
// A simulated chip computes for real when the model is small enough for the host.
// On failure: one line, with the remedy.
Result<std::unique_ptr<Device>> open_chip(const Scenario& scenario, const std::string& name,
                                          const ModelShape& shape);
// One line that says what a real chip offers, or why there is none (--probe).
std::string probe_chip();

}  // namespace oomlab::server
