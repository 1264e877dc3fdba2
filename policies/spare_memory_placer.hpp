// SpecInF's placement: an instance of inference goes where training leaves it enough memory.
// Source: its abstract names placement beside training by spare memory and no more, so the order
// among the GPUs that have room is reconstructed: most spare memory, or least (best fit).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/job_slots.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct SpareMemoryConstants {
  enum class Order : std::uint8_t { kMostSpare, kLeastSpare };
  Bytes reserve{};  ///< must stay free on each GPU
  Order order = Order::kMostSpare;
};

class SpareMemoryPlacer final : public policy::Placer {
 public:
  explicit SpareMemoryPlacer(const SpareMemoryConstants& constants) : constants_(constants) {}
  /// Jobs in order; ties: fewest jobs on the GPU, then its number. Jobs without room wait.
  std::vector<policy::Placement> place(std::span<const policy::JobInfo> waiting,
                                       std::span<const policy::GpuState> gpus,
                                       policy::Instant now) override;

 private:
  SpareMemoryConstants constants_;
  JobSlots slots_;
};

/// Nothing where `placement` is as_configured.
[[nodiscard]] std::unique_ptr<policy::Placer> make_spare_memory_placer(
    const policy::ParameterSet& given);
[[nodiscard]] policy::ParameterSpec spare_memory_parameter();

/// Whether so much more fits. A GPU or a job of unknown memory has no limit.
[[nodiscard]] bool fits(const policy::GpuState& gpu, const policy::JobInfo& job, Bytes reserve);

}  // namespace bubblesim::policies
