// How MIG cuts a GPU into instances.
#pragma once

#include <array>
#include <cstdint>

namespace bubblesim {

/// 0 slices: the GPU cannot be cut.
struct MigGeometry {
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_slices = 0;
  std::uint32_t slice_sms = 0;  ///< SMs of a compute slice
  /// SMs of an instance, by its compute slices, if it has more than its slices do; else 0.
  std::array<std::uint32_t, 8> instance_sms{};

  /// SMs of an instance of so many compute slices.
  [[nodiscard]] std::uint32_t sms_of(std::uint32_t slices) const {
    const bool stated = slices < instance_sms.size() && instance_sms[slices] > 0;
    return stated ? instance_sms[slices] : slices * slice_sms;
  }
};

}  // namespace bubblesim
