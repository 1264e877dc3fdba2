#include "capture/replay/cuda/stand_in_mix.hpp"

#include <algorithm>
#include <cmath>

#include "capture/replay/cuda/stand_in_arguments.hpp"

namespace bubblesim::capture::cuda {
namespace {

/// Share of the interface's bandwidth that memory steps reach: an H100 does 2.80 of 3.35 TB/s. More
/// traffic would need ever more steps, in vain.
constexpr double kReachable = 0.836;
constexpr std::uint32_t kUnits = 4;  ///< units of a loop
constexpr double kSchedulers = 4;    ///< schedulers of an SM

/// Share of a scheduler's issue slots that a single warp uses while it runs only such units.
constexpr double kSparseRate = 1.0 / kUnitCycles;
constexpr double kDenseRate = double(kChain) / kUnitCycles;
constexpr double kWideRate = double(kChain) * kWideChains / kUnitCycles;

}  // namespace

Shares shares_of(const KernelForm& form) {
  Shares shares{form.dram_share, form.issue_share};
  const bool memory = form.bound == program::KernelClass::kMemory;
  const bool compute = form.bound == program::KernelClass::kCompute;
  if (shares.dram <= 0) shares.dram = memory ? 0.8 : compute ? 0.05 : 0.3;
  if (shares.issue <= 0) shares.issue = memory ? 0.2 : compute ? 0.8 : 0.4;
  return {std::min(shares.dram, 1.0), std::min(shares.issue, 1.0)};
}

Mix mix_of(const DeviceFacts& facts, const KernelForm& form, const StandInShape& shape) {
  Mix mix;
  const Shares shares = shares_of(form);
  if (form.tensor) {
    mix.tensor = 2;
    mix.dense = 1;
  } else {
    const double per_sm = std::min<double>(
        shape.blocks, std::ceil(double(shape.grid_blocks()) / std::max(1U, facts.sm_count)));
    const double block_warps = std::ceil(double(shape.threads()) / 32);
    const double warps = std::max(1.0, per_sm * block_warps / kSchedulers);
    // Each unit is sparse, dense or wide: the sum nearest to the slots that one warp must issue.
    const double wanted = shares.issue / warps;
    double nearest = 1e9;
    for (std::uint32_t wide = 0; wide <= kUnits; ++wide) {
      for (std::uint32_t dense = 0; wide + dense <= kUnits; ++dense) {
        const std::uint32_t sparse = kUnits - wide - dense;
        const double rate =
            (sparse * kSparseRate + dense * kDenseRate + wide * kWideRate) / kUnits;
        if (std::abs(rate - wanted) >= nearest) continue;
        nearest = std::abs(rate - wanted);
        mix.sparse = sparse;
        mix.dense = dense;
        mix.wide = wide;
      }
    }
  }
  // In the time of a loop, each resident block moves its part of the traffic.
  const double loop_seconds = kUnits * kUnitCycles / (std::max(1U, facts.clock_khz) * 1e3);
  const double resident =
      std::min(double(shape.grid_blocks()), double(shape.blocks) * facts.sm_count);
  const double bytes = shares.dram * kReachable * double(facts.dram_bytes_per_second) *
                       loop_seconds / std::max(1.0, resident);
  const double rate = kRateUnit * bytes / (double(shape.threads()) * kBytesPerStep);
  mix.memory_rate = static_cast<std::uint32_t>(std::clamp(rate, 0.0, double(kMostMemoryRate)));
  return mix;
}

double wanted_traffic(const DeviceFacts& facts, const KernelForm& form, Duration solo) {
  return shares_of(form).dram * kReachable * double(facts.dram_bytes_per_second) *
         to_seconds(solo);
}

double traffic_of(const StandInShape& shape, const Mix& mix, double loops) {
  return loops * mix.memory_rate / kRateUnit * kBytesPerStep * double(shape.threads()) *
         double(shape.grid_blocks());
}

}  // namespace bubblesim::capture::cuda
