#include "sim/gpu/contention.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::gpu {
namespace {

std::array<double, 3> boundness_of(const hardware::ContentionSpec& spec) {
  std::array<double, 3> boundness{};
  for (const auto kernel_class : {program::KernelClass::kUnknown, program::KernelClass::kCompute,
                                  program::KernelClass::kMemory}) {
    boundness[static_cast<std::size_t>(kernel_class)] = memory_boundness(spec, kernel_class);
  }
  return boundness;
}

}  // namespace

double memory_boundness(const hardware::ContentionSpec& spec, program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return spec.compute_kernel_memory_boundness;
    case program::KernelClass::kMemory: return spec.memory_kernel_memory_boundness;
    case program::KernelClass::kUnknown: break;
  }
  return spec.unknown_kernel_memory_boundness;
}

Contention::Contention(const hardware::ContentionSpec& spec, std::uint32_t sm_count,
                       const hardware::PartSpec& part)
    : boundness_(boundness_of(spec)),
      l2_slowdown_(spec.l2_slowdown),
      part_(part),
      sm_count_(sm_count) {}

double Contention::memory_time(double sms) const {
  const double a = part_.dram_saturating_sms;
  if (sms >= 1 || a <= 0) return 1;
  return std::sqrt(std::sqrt((std::pow(sms, 4) + std::pow(a, 4)) / (1 + std::pow(a, 4))));
}

double Contention::clock(double lit) const {
  if (lit >= 1 || part_.dark_clock_gain <= 1) return 1;
  return std::min(part_.dark_clock_gain, 1 / std::cbrt(lit));
}

void DemandSum::clear() {
  for (const std::uint32_t client : listed_) clients_[client] = {};
  listed_.clear();
}

void DemandSum::add(ClientId client, const Demand& demand) {
  Client& entry = clients_[client.index()];
  if (!entry.listed) listed_.push_back(client.value);
  entry.listed = true;
  entry.demand += demand;
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
