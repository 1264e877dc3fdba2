#include "sim/measure/calibrate/part_fit.hpp"

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

}  // namespace

std::uint32_t sms_of(std::uint32_t percentage, const hardware::GpuSpec& spec) {
  return std::min(spec.sm_count, schedule::sm_cap(percentage, spec));
}

double relative_waves(std::uint64_t blocks, std::uint32_t sms, const hardware::GpuSpec& spec) {
  return static_cast<double>(divide_up(blocks, sms)) /
         static_cast<double>(divide_up(blocks, spec.sm_count));
}

double part_error(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  return std::sqrt(squares(parts, spec) / static_cast<double>(parts.size()));
}

PartFit fit_parts(const std::vector<PartTime>& parts, hardware::GpuSpec spec) {
  spec.part = {0.5, 1.2};
  for (int round = 0; round < kRounds; ++round) {
    improve_around(parts, spec, &hardware::PartSpec::dram_saturating_sms, 0.01, 1);
    improve_around(parts, spec, &hardware::PartSpec::dark_clock_gain, 1, 2);
  }
  return {spec.part, part_error(parts, spec)};
}

namespace {

constexpr std::array<std::uint32_t, 7> kParts{100, 80, 65, 50, 40, 30, 20};
constexpr std::array<program::KernelClass, 2> kPartClasses{program::KernelClass::kMemory,
                                                       program::KernelClass::kCompute};
constexpr std::uint64_t kPartWaves = 60;
constexpr Duration kPartKernel = std::chrono::milliseconds(1);
constexpr std::uint64_t kPartPasses = 9;
constexpr Duration kBetweenParts = std::chrono::milliseconds(4);

std::uint64_t part_blocks(const hardware::GpuSpec& spec) { return kPartWaves * spec.sm_count; }

}  // namespace

ProbeRun part_run(const hardware::GpuSpec& spec) {
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
  ProbeRun run = probe_run(policy::SharingMode::kMps, std::move(plans));
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    run.setup.jobs[i].sm_percentage = run.shares[i].sm_percentage = kParts[i];
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

}  // namespace bubblesim::measure
