#include "sim/network/group.hpp"

#include <algorithm>

namespace bubblesim::network {

std::uint32_t Group::size() const {
  return listed.empty() ? inner * outer : static_cast<std::uint32_t>(listed.size());
}

std::vector<std::uint32_t> Group::members() const {
  std::vector<std::uint32_t> out = listed;
  if (out.empty()) {
    out.reserve(size());
    for (std::uint32_t i = 0; i < outer; ++i) {
      for (std::uint32_t j = 0; j < inner; ++j) {
        out.push_back(first + i * outer_stride + j * inner_stride);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Group strided_group(std::uint32_t first, std::uint32_t count, std::uint32_t stride) {
  Group group;
  group.first = first;
  group.inner = count;
  group.inner_stride = stride;
  return group;
}

}  // namespace bubblesim::network
