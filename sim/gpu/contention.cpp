#include "sim/gpu/contention.hpp"

#include <algorithm>

namespace bubblesim::gpu {
namespace {

std::array<double, 3> boundness_of(const hardware::ContentionSpec& spec) {
  std::array<double, 3> boundness{};
  boundness[static_cast<std::size_t>(program::KernelClass::kUnknown)] =
      spec.unknown_kernel_memory_boundness;
  boundness[static_cast<std::size_t>(program::KernelClass::kCompute)] =
      spec.compute_kernel_memory_boundness;
  boundness[static_cast<std::size_t>(program::KernelClass::kMemory)] =
      spec.memory_kernel_memory_boundness;
  return boundness;
}

}  // namespace

Contention::Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count)
    : boundness_(boundness_of(spec)), l2_slowdown_(spec.l2_slowdown), sm_count_(sm_count) {}

void DemandSum::clear() {
  for (const std::uint32_t client : listed_) clients_[client] = {};
  listed_.clear();
}

void DemandSum::add(ClientId client, const Demand& demand) {
  Client& of = clients_[client.index()];
  if (!of.listed) listed_.push_back(client.value);
  of.listed = true;
  of.demand += demand;
}

Demand DemandSum::total() {
  std::sort(listed_.begin(), listed_.end());
  Demand total;
  for (const std::uint32_t client : listed_) {
    Demand& demand = clients_[client].demand;
    demand = demand.of_client();
    total += demand;
  }
  return total;
}

}  // namespace bubblesim::gpu
