// Fits the speed of kernels on a part of the SMs: the constants of hardware::PartSpec from times of
// kernels that ran alone on some of the SMs, by the GPU model's formula (sim/gpu/contention.hpp).
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/divide.hpp"
#include "sim/gpu/contention.hpp"
#include "sim/measure/calibrate/probe.hpp"
#include "sim/measure/calibrate/probes.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::measure {
namespace {

constexpr int kRounds = 4;
constexpr double kCoarse = 2e-2;
constexpr double kFine = 1e-3;

double squares(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  const gpu::Contention contention(spec.contention, spec.sm_count, spec.part);
  double sum = 0;
  for (const PartTime& part : parts) {
    const double share = static_cast<double>(part.sms) / spec.sm_count;
    const gpu::Confinement confined{share, share, 1 / (share * part.waves)};
    const double modelled = part.waves / contention.rate({}, 0, part.kernel_class, confined);
    const double error = modelled / part.relative - 1;
    sum += error * error;
  }
  return sum;
}

/// The best value of one constant in a range, the other as it is.
void improve(const std::vector<PartTime>& parts, hardware::GpuSpec& spec,
             double hardware::PartSpec::*constant, double least, double most, double step) {
  double best = spec.part.*constant;
  double error = squares(parts, spec);
  for (double value = least; value <= most + step / 2; value += step) {
    spec.part.*constant = value;
    const double tried = squares(parts, spec);
    if (tried >= error) continue;
    error = tried;
    best = value;
  }
  spec.part.*constant = best;
}

void improve_around(const std::vector<PartTime>& parts, hardware::GpuSpec& spec,
                    double hardware::PartSpec::*constant, double least, double most) {
  improve(parts, spec, constant, least, most, kCoarse);
  const double found = spec.part.*constant;
  improve(parts, spec, constant, std::max(least, found - kCoarse), std::min(most, found + kCoarse),
          kFine);
}

/// SMs that a client of this MPS percentage has.
std::uint32_t sms_of(std::uint32_t percentage, const hardware::GpuSpec& spec) {
  return std::min(spec.sm_count, schedule::sm_cap(percentage, spec));
}

/// Waves of `blocks` on this many SMs, over those on all SMs.
double relative_waves(std::uint64_t blocks, std::uint32_t sms, const hardware::GpuSpec& spec) {
  return static_cast<double>(divide_up(blocks, sms)) /
         static_cast<double>(divide_up(blocks, spec.sm_count));
}

/// Root mean square of the relative times' relative errors. Precondition: there are parts.
double part_error(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  return std::sqrt(squares(parts, spec) / static_cast<double>(parts.size()));
}

struct PartFit {
  hardware::PartSpec part;
  double error = 0;  ///< part_error
};

/// Least squares, to a thousandth. Precondition: there are parts.
PartFit fit_parts(const std::vector<PartTime>& parts, hardware::GpuSpec spec) {
  spec.part = {0.5, 1.2};
  for (int round = 0; round < kRounds; ++round) {
    improve_around(parts, spec, &hardware::PartSpec::dram_saturating_sms, 0.01, 1);
    improve_around(parts, spec, &hardware::PartSpec::dark_clock_gain, 1, 2);
  }
  return {spec.part, part_error(parts, spec)};
}

constexpr std::array<std::uint32_t, 7> kParts{100, 80, 65, 50, 40, 30, 20};
constexpr std::array<program::KernelClass, 2> kPartClasses{program::KernelClass::kMemory,
                                                       program::KernelClass::kCompute};
constexpr std::uint64_t kPartWaves = 60;
constexpr Duration kPartKernel = std::chrono::milliseconds(1);
constexpr std::uint64_t kPartPasses = 9;
constexpr Duration kBetweenParts = std::chrono::milliseconds(4);

std::uint64_t part_blocks(const hardware::GpuSpec& spec) { return kPartWaves * spec.sm_count; }

}  // namespace

RigSetup part_run(const hardware::GpuSpec& spec) {
  std::vector<capture::JobPlan> plans;
  Duration offset{};
  for (std::uint32_t i = 0; i < kParts.size(); ++i) {
    ProbePlan plan(std::to_string(kParts[i]) + " % of the SMs", i);
    for (const program::KernelClass kernel_class : kPartClasses) {
      plan.launch({lone_block_form(part_blocks(spec), kernel_class, spec), kPartKernel});
      plan.wait();
    }
    plans.push_back(plan.take(kPartPasses, offset));
    const double stretch = static_cast<double>(spec.sm_count) / sms_of(kParts[i], spec);
    offset += kBetweenParts +
              scale(kPartKernel * (kPartPasses * kPartClasses.size()), 1.1 * stretch);
  }
  RigSetup run = probe_run(policy::SharingMode::kMps, std::move(plans));
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    run.shares[i].sm_percentage = kParts[i];
  }
  return run;
}

std::vector<PartTime> part_times(const Records& records, const hardware::GpuSpec& spec) {
  std::vector<PartTime> out;
  for (std::uint32_t op = 0; op < kPartClasses.size(); ++op) {
    double whole = 0;
    for (std::size_t i = 0; i < records.size() && i < kParts.size(); ++i) {
      std::vector<double> lengths;
      for (const auto& operation : records[i].operations) {
        // The first pass pays for the passage from another client.
        if (operation.op == op && operation.pass > 0) lengths.push_back(length_of(operation));
      }
      const Spread spread = spread_of(std::move(lengths));
      if (spread.count == 0) continue;
      if (i == 0) whole = spread.middle;
      if (whole <= 0) continue;
      const std::uint32_t sms = sms_of(kParts[i], spec);
      out.push_back({kPartClasses[op], sms, relative_waves(part_blocks(spec), sms, spec),
                     spread.middle / whole});
    }
  }
  return out;
}

std::vector<Finding> part_findings(const std::vector<PartTime>& parts,
                                   const hardware::GpuSpec& base) {
  std::vector<Finding> out{{"part/dram_saturating_sms", {}, {}}, {"part/dark_clock_gain", {}, {}}};
  if (parts.size() < kLeastCount) {
    for (Finding& finding : out) {
      finding.missing = std::to_string(parts.size()) + " parts of the SMs were seen";
    }
    return out;
  }
  const PartFit fit = fit_parts(parts, base);
  const std::array<double, 2> found{fit.part.dram_saturating_sms, fit.part.dark_clock_gain};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].spread = {parts.size(), found[i] - fit.error, found[i], found[i] + fit.error};
  }
  return out;
}

namespace {

// As many as a rig has clients; 100 first, which says how long a wave lasts.
constexpr std::array<std::uint32_t, 14> kPercentages{100, 90, 83, 75, 67, 58, 50,
                                                     42,  33, 27, 21, 15, 10, 5};
constexpr Duration kWave = std::chrono::microseconds(20);
constexpr std::uint64_t kExecutions = 3;
constexpr Duration kBetween = std::chrono::milliseconds(4);
constexpr double kLatest = 1.1;  ///< of the time that the base device's steps would take
constexpr std::uint32_t kMostStep = 16;
constexpr double kMostError = 0.02;  ///< of the best step, root mean square
constexpr double kBetter = 0.99;     ///< a larger step must be better by so much

std::uint64_t blocks_of(const hardware::GpuSpec& spec) {
  return std::uint64_t{spec.sm_count} * spec.sm_count;
}

bool overlaps(const capture::OperationRecord& operation, const Records& records,
              std::size_t except) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i == except) continue;
    for (const auto& other : records[i].operations) {
      if (other.start < operation.end && operation.start < other.end) return true;
    }
  }
  return false;
}

/// What of these shares would be times on parts of the SMs, if SMs came in the spec's steps.
std::vector<PartTime> part_times_of(const std::vector<SmShare>& shares,
                                    const hardware::GpuSpec& spec) {
  std::vector<PartTime> out;
  for (const SmShare& share : shares) {
    if (share.relative <= 0 || share.percentage == 100) continue;
    const std::uint32_t sms = sms_of(share.percentage, spec);
    out.push_back({program::KernelClass::kCompute, sms, relative_waves(blocks_of(spec), sms, spec),
                   share.relative});
  }
  return out;
}

}  // namespace

RigSetup sm_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form =
      lone_block_form(blocks_of(spec), program::KernelClass::kCompute, spec);
  std::vector<capture::JobPlan> plans;
  Duration offset{};
  for (std::uint32_t i = 0; i < kPercentages.size(); ++i) {
    ProbePlan plan(std::to_string(kPercentages[i]) + " %", i);
    plan.launch({form, kWave * spec.sm_count});
    plan.wait();
    plans.push_back(plan.take(kExecutions, offset));
    const std::uint32_t sms = sms_of(kPercentages[i], spec);
    const auto length = static_cast<double>(to_ns(kWave) * kExecutions) *
                        static_cast<double>(divide_up(blocks_of(spec), sms));
    offset += Duration{std::llround(kLatest * length)} + kBetween;
  }
  RigSetup run = probe_run(policy::SharingMode::kMps, std::move(plans));
  for (std::size_t i = 0; i < kPercentages.size(); ++i) {
    run.shares[i].sm_percentage = kPercentages[i];
  }
  return run;
}

// The first execution of a client pays for the passage from another client's.
std::vector<SmShare> sm_shares(const RigSetup& run, const Records& records) {
  std::vector<SmShare> shares;
  double whole = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::vector<double> lengths;
    for (const auto& operation : records[i].operations) {
      if (operation.pass == 0 || overlaps(operation, records, i)) continue;
      lengths.push_back(length_of(operation));
    }
    const Spread spread = spread_of(std::move(lengths));
    SmShare share{run.shares[i].sm_percentage, spread.middle, 0, spread.count, 0};
    if (share.percentage == 100) whole = spread.middle;
    if (whole > 0 && share.count > 0) share.relative = share.length_ns / whole;
    shares.push_back(share);
  }
  return shares;
}

Finding tpc_finding(std::vector<SmShare>& shares, const hardware::GpuSpec& spec) {
  hardware::GpuSpec tried = spec;
  std::uint32_t best = 0;
  double least = kMostError;
  std::size_t seen = 0;
  for (tried.tpc_sms = 1; tried.tpc_sms <= kMostStep; ++tried.tpc_sms) {
    const std::vector<PartTime> parts = part_times_of(shares, tried);
    seen = parts.size();
    if (seen < kLeastCount) break;
    tried.part = {};  // SMs in proportion, which no fit has
    const double error = std::min(part_error(parts, tried), fit_parts(parts, tried).error);
    if (error >= kBetter * least) continue;
    least = error;
    best = tried.tpc_sms;
  }
  const auto step = static_cast<double>(best);
  Finding finding{"tpc_sms", {seen, step, step, step}, {}};
  if (seen < kLeastCount) {
    finding.missing = std::to_string(seen) + " percentages were seen";
  } else if (best == 0) {
    finding.missing = "no step gives what " + std::to_string(seen) + " percentages gave";
  } else {
    tried.tpc_sms = best;
    for (SmShare& share : shares) share.sms = sms_of(share.percentage, tried);
  }
  return finding;
}

namespace {

constexpr Duration kSliceLength = std::chrono::milliseconds(900);
// An absence is at least so many kernels long; one kernel's duration never varies so much.
constexpr double kLeastAway = 1.5;

/// Least squares of `y` over 0, 1, 2, ...
double slope(const std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  double sum_y = 0, sum_xy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum_y += y[i];
    sum_xy += static_cast<double>(i) * y[i];
  }
  const double mean_x = (n - 1) / 2;
  return (sum_xy - mean_x * sum_y) / (n * (n * n - 1) / 12);
}

/// Slices of which each is one measurement: the slope over windows of so many of them.
constexpr std::size_t kWindow = 24;

std::vector<double> window_slopes(const std::vector<double>& own) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i + kWindow <= own.size(); i += kWindow / 2) {
    slopes.push_back(slope({own.begin() + static_cast<std::ptrdiff_t>(i),
                            own.begin() + static_cast<std::ptrdiff_t>(i + kWindow)}));
  }
  return slopes;
}

/// The row of one process as the device ran it. A kernel whose process loses the GPU stands still
/// until the process's next slice, so that it ends later after its predecessor than other kernels
/// do. The excess is the time that the process was away.
struct Turns {
  double slice = 0;          ///< ns that the process has the GPU between two absences; 0: too few
  std::vector<double> away;  ///< ns
};

/// Process's own time at which it went away, in steps of its kernels.
std::vector<double> absences(const capture::JobRecord& record, Turns& turns) {
  const auto list = by_start(record);
  std::vector<double> steps;
  for (std::size_t i = 1; i < list.size(); ++i) {
    steps.push_back(static_cast<double>(to_ns(list[i].end - list[i - 1].end)));
  }
  const double kernel = spread_of(steps).middle;  // from end to end, with the GPU
  std::vector<double> own;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] - kernel < kLeastAway * kernel) continue;
    turns.away.push_back(steps[i] - kernel);
    own.push_back(static_cast<double>(i) * kernel);
  }
  return own;
}

}  // namespace

RigSetup slice_run(const hardware::GpuSpec& spec) {
  const std::vector<ProbeKernel> kernels = filling_row(spec);
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan("slices " + std::to_string(client), client);
    plan.row(kernels);
    plans.push_back(plan.take(0));
  }
  RigSetup run = probe_run(policy::SharingMode::kTimeSliced, std::move(plans));
  run.limit = kSliceLength;
  return run;
}

std::vector<Finding> slice_findings(const Records& records) {
  std::vector<double> slices, switches;
  std::vector<Turns> turns;
  for (const capture::JobRecord& record : records) {
    Turns found;
    const std::vector<double> own = absences(record, found);
    if (own.size() >= kWindow) found.slice = slope(own);  // fewer: nothing is said of the other
    for (const double slope_of_window : window_slopes(own)) slices.push_back(slope_of_window);
    turns.push_back(std::move(found));
  }
  for (std::size_t i = 0; i < turns.size() && turns.size() == 2; ++i) {
    const double other = turns[1 - i].slice;
    for (const double away : turns[i].away) {
      if (other > 0) switches.push_back((away - other) / 2);
    }
  }
  Finding slice = finding_of("time_slice", std::move(slices), kTimeGrain);
  Finding change = finding_of("context_switch", std::move(switches), kTimeGrain);
  // Slopes over all slices are closer than those of windows, whose spread they have.
  if (slice.missing.empty() && turns.size() == 2) {
    slice.spread.middle = (turns[0].slice + turns[1].slice) / 2;
  }
  return {std::move(slice), std::move(change)};
}

}  // namespace bubblesim::measure
