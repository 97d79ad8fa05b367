// Who holds memory. Every allocation carries one of these; the names are JSON keys (contract).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace oomlab {

enum class Owner : unsigned char {
    context, weights, kv, activations, workspace, graphs, communication,  // allocated
    cached, other_processes, viewer, unattributed,                        // the rest of the device
    count_
};
inline constexpr std::size_t kOwners = static_cast<std::size_t>(Owner::count_);
inline constexpr std::array<std::string_view, kOwners> kOwnerNames = {
    "context", "weights", "kv", "activations", "workspace", "graphs", "communication",
    "cached", "other_processes", "viewer", "unattributed"};
constexpr std::string_view owner_name(Owner o) { return kOwnerNames[static_cast<std::size_t>(o)]; }

}  // namespace oomlab
