// SpecInF's placement: an instance of inference goes to a GPU on which training leaves enough
// memory. The paper's abstract says only that instances are placed beside training by spare memory;
// the order among GPUs with room is reconstructed: most spare memory first, or least (best fit).
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
  /// Places jobs in their order; of equal GPUs on the one with the fewest jobs, then the lowest
  /// number. Jobs without room wait.
  std::vector<policy::Placement> place(std::span<const policy::JobInfo> waiting,
                                       std::span<const policy::GpuState> gpus,
                                       policy::Instant now) override;

 private:
  SpareMemoryConstants constants_;
  JobSlots slots_;
};

/// Null if `placement` is as_configured.
[[nodiscard]] std::unique_ptr<policy::Placer> make_spare_memory_placer(
    const policy::ParameterSet& given);
[[nodiscard]] policy::ParameterSpec spare_memory_parameter();

/// Whether the job's memory fits beside the GPU's used memory and `reserve`. Unknown memory fits.
[[nodiscard]] bool fits(const policy::GpuState& gpu, const policy::JobInfo& job, Bytes reserve);

}  // namespace bubblesim::policies
