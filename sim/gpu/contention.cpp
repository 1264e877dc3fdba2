#include "sim/gpu/contention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

void DemandSum::add(ClientId client, const Demand& demand) {
  Client& entry = clients_[client.index()];
  if (std::exchange(entry.round, round_) != round_) entry.demand = {};
  entry.demand += demand;
  if (std::exchange(entry.listed, true)) return;
  listed_.insert(std::upper_bound(listed_.begin(), listed_.end(), client.value), client.value);
}

Demand DemandSum::total() {
  Demand total;
  auto kept = listed_.begin();
  for (const std::uint32_t client : listed_) {
    Client& entry = clients_[client];
    entry.listed = entry.round == round_;
    entry.demand = entry.listed ? entry.demand.of_client() : Demand{};
    if (entry.listed) *kept++ = client;
    total += entry.demand;
  }
  listed_.erase(kept, listed_.end());
  return total;
}

}  // namespace bubblesim::gpu
