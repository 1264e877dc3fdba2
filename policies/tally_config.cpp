#include "policies/tally_config.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/divide.hpp"

namespace bubblesim::policies {
namespace {

using Kind = TallyForm::Kind;

/// Tally's code takes half of a wave as the time until a worker's block ends.
constexpr int kWaveFraction = 2;
/// Slices are 1.3 times as small as the grid's length requires (Tally's code).
constexpr double kSliceMargin = 1.3;
constexpr std::uint32_t kThreadsOfAnSm = 2048;

/// Blocks that the GPU holds at once; if not known, guessed from the threads alone.
std::uint64_t resident(const TallyKernel& kernel, const TallyLimits& limits) {
  if (kernel.sm_blocks > 0) return kernel.sm_blocks;
  const std::uint32_t threads = std::max(1u, kernel.threads);
  return std::uint64_t{limits.sms} * std::max(1u, kThreadsOfAnSm / threads);
}

/// The share of the kernel's greatest rate that this many resident blocks reach.
double reach(const TallyKernel& kernel, const TallyLimits& limits, std::uint64_t blocks) {
  const auto sms = static_cast<double>(limits.sms);
  const double on_each = std::max(1.0, static_cast<double>(blocks) / sms);
  const double threads = on_each * std::max(1u, kernel.threads);
  const double units = std::min(1.0, static_cast<double>(blocks) / sms) *
                       std::min(1.0, threads / limits.busy_threads);
  const double held = static_cast<double>(blocks) / static_cast<double>(resident(kernel, limits));
  const double dram = std::min(1.0, held / limits.dram_share);
  switch (kernel.bound) {
    case policy::KernelClass::kCompute: return units;
    case policy::KernelClass::kMemory: return dram;
    case policy::KernelClass::kUnknown: break;
  }
  return std::min(units, dram);
}

/// The kernel's time with this many resident blocks, over its own time; at least 1.
double stretch(const TallyKernel& kernel, const TallyLimits& limits, std::uint64_t blocks) {
  const std::uint64_t whole = std::min(kernel.blocks, resident(kernel, limits));
  return reach(kernel, limits, whole) / reach(kernel, limits, std::min(blocks, whole));
}

/// The number of resident blocks with which the kernel takes `stretch` times as long, if each block
/// keeps its pace on a full GPU.
std::uint64_t blocks_for(const TallyKernel& kernel, const TallyLimits& limits, double stretch) {
  if (stretch <= 1) return 0;
  const std::uint64_t whole = std::min(kernel.blocks, resident(kernel, limits));
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(static_cast<double>(whole) / stretch));
}

TallyForm persistent(const TallyKernel& kernel, const TallyLimits& limits, std::uint64_t workers) {
  const double longer = stretch(kernel, limits, workers);
  TallyForm form{Kind::kPersistent, blocks_for(kernel, limits, longer),
                 limits.persistent_slowdown};
  const double length = form.slowdown * longer;
  form.speed = 1 / length;
  const auto waves = static_cast<std::int64_t>(divide_up(kernel.blocks, workers));
  form.turnaround = scale(kernel.length, length) / (waves * kWaveFraction);
  return form;
}

TallyForm sliced(const TallyKernel& kernel, const TallyLimits& limits, std::uint64_t blocks) {
  const auto slices = static_cast<std::int64_t>(divide_up(kernel.blocks, blocks));
  const double overhead = static_cast<double>((limits.slice_overhead * (slices - 1)).count()) /
                          static_cast<double>(kernel.length.count());
  const double longer = stretch(kernel, limits, blocks);
  TallyForm form{Kind::kSliced, blocks_for(kernel, limits, longer), 1 + overhead / longer};
  const double length = longer + overhead;
  form.speed = 1 / length;
  form.turnaround = scale(kernel.length, length) / slices;
  return form;
}

/// Finds the first form of at least this speed within the limit, denser forms first. False: there
/// is none.
bool find(const TallyKernel& kernel, const TallyLimits& limits, double speed, TallyForm& found) {
  const std::uint64_t per_unit = std::min<std::uint64_t>(limits.sms, kernel.blocks);
  const std::uint32_t densest =
      std::max(1u, limits.threads_per_sm / std::max(1u, kernel.threads));
  for (std::uint64_t dense = densest; dense > 0; --dense) {
    const std::uint64_t most = dense * per_unit;
    if (dense > 1 && most > resident(kernel, limits)) continue;
    for (const TallyForm& form :
         {persistent(kernel, limits, most), sliced(kernel, limits, most)}) {
      if (form.speed < speed || form.turnaround > limits.turnaround) continue;
      found = form;
      return true;
    }
  }
  return false;
}

/// Fewer workers than SMs, or smaller slices: whichever is faster with a block an SM, if that is
/// fast enough. How slow the smaller form itself is, Tally's code does not ask.
TallyForm shrunk(const TallyKernel& kernel, const TallyLimits& limits, const TallyForm& original) {
  const std::uint64_t units = std::min<std::uint64_t>(limits.sms, kernel.blocks);
  const TallyForm workers = persistent(kernel, limits, units);
  const TallyForm slices = sliced(kernel, limits, units);
  if (std::max(workers.speed, slices.speed) < limits.lowest_speed) return original;
  const auto limit = static_cast<double>(limits.turnaround.count());
  if (workers.speed >= slices.speed) {
    const double part = limit / std::max(1.0, static_cast<double>(workers.turnaround.count()));
    const auto fewer = static_cast<std::uint64_t>(part * static_cast<double>(units));
    return persistent(kernel, limits, std::clamp<std::uint64_t>(fewer, limits.least_blocks, units));
  }
  const double wanted = kSliceMargin * static_cast<double>(kernel.length.count()) / limit;
  const std::uint64_t count = std::max(static_cast<std::uint64_t>(std::ceil(wanted)),
                                       divide_up(kernel.blocks, units));
  return sliced(kernel, limits, std::max<std::uint64_t>(limits.least_blocks,
                                                        divide_up(kernel.blocks, count)));
}

}  // namespace

TallyForm choose_form(const TallyKernel& kernel, const TallyLimits& limits) {
  TallyForm original;
  original.turnaround = kernel.length;
  if (kernel.length <= Duration{} || kernel.blocks <= limits.sms || limits.sms == 0) {
    return original;
  }
  TallyForm found;
  if (kernel.length <= limits.turnaround) {
    return find(kernel, limits, limits.short_speed, found) ? found : original;
  }
  for (int tenths = 10; tenths >= 1; --tenths) {
    const double speed = std::max(0.1 * tenths, limits.lowest_speed);
    if (find(kernel, limits, speed, found)) return found;
  }
  if (std::min<std::uint64_t>(limits.sms, kernel.blocks) <= limits.least_blocks) return original;
  return shrunk(kernel, limits, original);
}

}  // namespace bubblesim::policies
