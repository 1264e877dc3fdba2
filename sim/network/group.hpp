// The GPUs that take part in a collective, by global GPU index (node = index / gpus_per_node).
#pragma once

#include <cstdint>
#include <vector>

namespace bubblesim::network {

/// Members are first + i * outer_stride + j * inner_stride for i < outer, j < inner; that covers
/// every group of a regular parallel plan in 20 bytes. A list covers the rest.
struct Group {
  std::uint32_t first = 0;
  std::uint32_t inner = 1;         ///< members next to each other, inner_stride apart
  std::uint32_t inner_stride = 1;
  std::uint32_t outer = 1;         ///< such runs, outer_stride apart
  std::uint32_t outer_stride = 1;
  std::vector<std::uint32_t> listed{};  ///< if not empty, these are the members, distinct

  [[nodiscard]] std::uint32_t size() const;
  /// Ascending.
  [[nodiscard]] std::vector<std::uint32_t> members() const;
};

/// `count` members `stride` apart.
[[nodiscard]] Group strided_group(std::uint32_t first, std::uint32_t count,
                                  std::uint32_t stride = 1);

}  // namespace bubblesim::network
