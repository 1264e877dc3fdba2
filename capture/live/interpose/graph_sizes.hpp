// How much a launch of each instantiated graph puts on the device.
#pragma once

#include "capture/live/interpose/driver_types.hpp"

namespace bubblesim::capture::interpose {

struct GraphSize {
  std::uint32_t kernels = 0;  ///< kernel nodes, those of child graphs included
  std::uint32_t copies = 0;   ///< copies and memsets
  std::uint64_t blocks = 0;   ///< of all kernel nodes
  std::uint32_t threads_per_block = 0;  ///< of the first kernel
};

/// A graph as the driver describes it; empty where it does not.
[[nodiscard]] GraphSize size_of_graph(Handle graph) noexcept;

/// Sizes are kept by executable graph. Nodes that are switched off or changed after the
/// instantiation, and bodies of conditional nodes, are not followed. An unknown graph counts as one
/// kernel.
void remember_graph(Handle executable, const GraphSize& size) noexcept;
void forget_graph(Handle executable) noexcept;
[[nodiscard]] GraphSize remembered_graph(Handle executable) noexcept;

}  // namespace bubblesim::capture::interpose
