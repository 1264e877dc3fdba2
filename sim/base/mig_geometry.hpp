// The instances into which MIG can divide a GPU.
#pragma once

#include <array>
#include <cstdint>

namespace bubblesim {

/// 0 slices: the GPU cannot be divided.
struct MigGeometry {
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_slices = 0;
  std::uint32_t slice_sms = 0;  ///< SMs of a compute slice
  /// by compute slices: the instance's SMs if more than its slices have; else 0
  std::array<std::uint32_t, 8> instance_sms{};

  /// SMs of an instance of this many compute slices.
  [[nodiscard]] std::uint32_t sms_of(std::uint32_t slices) const {
    const bool stated = slices < instance_sms.size() && instance_sms[slices] > 0;
    return stated ? instance_sms[slices] : slices * slice_sms;
  }
};

}  // namespace bubblesim
