#include "policies/spare_memory_placer.hpp"

#include <optional>
#include <tuple>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {

using namespace policy;

bool fits(const GpuState& gpu, const JobInfo& job, Bytes reserve) {
  if (!job.memory_known || gpu.memory == Bytes{}) return true;
  return gpu.used + job.memory + reserve <= gpu.memory;
}

std::vector<Placement> SpareMemoryPlacer::place(std::span<const JobInfo> waiting,
                                                std::span<const GpuState> gpus, Instant) {
  std::vector<GpuState> state(gpus.begin(), gpus.end());
  std::vector<Placement> placements;
  const auto rank = [this](const GpuState& gpu) {
    const auto used = static_cast<std::int64_t>(gpu.used.value);
    const std::int64_t spare = static_cast<std::int64_t>(gpu.memory.value) - used;
    const bool most = constants_.order == SpareMemoryConstants::Order::kMostSpare;
    return std::tuple(most ? -spare : spare, gpu.jobs);
  };
  for (const JobInfo& job : waiting) {
    GpuState* best = nullptr;
    for (GpuState& gpu : state) {
      if (!slots_.can_take(gpu, job) || !fits(gpu, job, constants_.reserve)) continue;
      if (best == nullptr || rank(gpu) < rank(*best)) best = &gpu;
    }
    if (best == nullptr) continue;
    best->used = best->used + job.memory;
    ++best->jobs;
    slots_.place(job, best->id);
    placements.push_back({job.id, best->id});
  }
  return placements;
}

std::unique_ptr<Placer> make_spare_memory_placer(const ParameterSet& given) {
  using Order = SpareMemoryConstants::Order;
  const std::string& placement = given.text("placement");
  if (placement == "as_configured") return nullptr;
  return std::make_unique<SpareMemoryPlacer>(SpareMemoryConstants{
      .reserve = {static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20},
      .order = placement == "most_spare_memory" ? Order::kMostSpare : Order::kLeastSpare});
}

ParameterSpec spare_memory_parameter() {
  return declare_choice("placement", {"most_spare_memory", "least_spare_memory", "as_configured"},
                        {"",
                         "Which GPU a fill job, or one of a filler's instances, goes to: by the "
                         "memory that training and others leave, or the first that has room.",
                         "reconstructed: SpecInF's abstract says spare memory, no order"});
}

}  // namespace bubblesim::policies
