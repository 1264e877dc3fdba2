#include "sim/gpu/contention.hpp"

#include <algorithm>

namespace bubblesim::gpu {

Contention::Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count)
    : spec_(spec), sm_count_(sm_count) {}

void Contention::clear() { std::fill(clients_.begin(), clients_.end(), Demand{}); }

// A kernel of fewer blocks than SMs sits on that many SMs, one block each: the hardware spreads
// blocks before it stacks them.
void Contention::add(ClientId client, const KernelProfile& profile, std::uint64_t resident,
                     std::uint64_t full_wave) {
  const auto alone = static_cast<double>(full_wave);
  const double present = static_cast<double>(resident) / alone;
  const double sms = std::min(1.0, alone / sm_count_);
  Demand& demand = clients_[client.index()];
  demand.dram += profile.dram_share * present;
  demand.issue += profile.issue_share * present * sms;
}

void Contention::total() {
  total_ = {};
  for (Demand& demand : clients_) {
    demand.dram = std::min(demand.dram, 1.0);
    demand.issue = std::min(demand.issue, 1.0);
    total_.dram += demand.dram;
    total_.issue += demand.issue;
  }
}

double Contention::rate(ClientId client, KernelClass kernel_class) const {
  const double others = std::max(0.0, total_.dram - clients_[client.index()].dram);
  const double l2 = spec_.l2_slowdown * others;
  if (total_.dram <= bandwidth_ && total_.issue <= 1 && l2 <= 0) return 1;
  const double memory = boundness(kernel_class);
  const double stretch =
      memory * std::max(1.0, total_.dram / bandwidth_) + (1 - memory) * std::max(1.0, total_.issue);
  return 1 / (std::max(1.0, stretch) * (1 + l2));
}

double Contention::boundness(KernelClass kernel_class) const {
  switch (kernel_class) {
    case KernelClass::kCompute: return spec_.compute_kernel_memory_boundness;
    case KernelClass::kMemory: return spec_.memory_kernel_memory_boundness;
    case KernelClass::kUnknown: break;
  }
  return spec_.unknown_kernel_memory_boundness;
}

}  // namespace bubblesim::gpu
