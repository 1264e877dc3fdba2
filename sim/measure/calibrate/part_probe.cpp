#include <algorithm>
#include <array>
#include <cmath>

#include "sim/gpu/contention.hpp"
#include "sim/measure/calibrate/probe_plan.hpp"
#include "sim/measure/calibrate/probes.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::measure {
namespace {

constexpr std::array<std::uint32_t, 7> kParts{100, 80, 65, 50, 40, 30, 20};
constexpr std::array<program::KernelClass, 2> kPartClasses{program::KernelClass::kMemory,
                                                       program::KernelClass::kCompute};
constexpr std::uint64_t kPartWaves = 60;
constexpr Duration kPartKernel = std::chrono::milliseconds(1);
constexpr std::uint64_t kPartPasses = 9;
constexpr Duration kBetweenParts = std::chrono::milliseconds(4);

std::uint32_t part_sms(std::uint32_t percentage, const hardware::GpuSpec& spec) {
  return std::min(spec.sm_count, schedule::sm_cap(percentage, spec));
}

/// Relative to all SMs.
double part_time_of(const PartTime& part, const hardware::GpuSpec& spec) {
  const gpu::Contention contention(spec.contention, spec.sm_count, spec.part);
  const double share = static_cast<double>(part.sms) / spec.sm_count;
  const std::uint64_t blocks = kPartWaves * spec.sm_count;
  const double waves = static_cast<double>((blocks + part.sms - 1) / part.sms) / kPartWaves;
  return waves / contention.rate({}, 0, part.kernel_class, {share, share});
}

double part_squares(const std::vector<PartTime>& parts, const hardware::GpuSpec& spec) {
  double sum = 0;
  for (const PartTime& part : parts) {
    const double error = part_time_of(part, spec) / part.relative - 1;
    sum += error * error;
  }
  return sum;
}

/// The best value of one constant, the other as it is, to a thousandth.
void improve_part(const std::vector<PartTime>& parts, hardware::GpuSpec& spec,
             double hardware::PartSpec::*constant, double least, double most) {
  constexpr double kPartStep = 1e-3;
  double best = spec.part.*constant;
  double error = part_squares(parts, spec);
  for (double value = least; value <= most; value += kPartStep) {
    spec.part.*constant = value;
    const double tried = part_squares(parts, spec);
    if (tried >= error) continue;
    error = tried;
    best = value;
  }
  spec.part.*constant = best;
}

}  // namespace

ProbeRun part_run(const hardware::GpuSpec& spec) {
  std::vector<capture::JobPlan> plans;
  Duration offset{};
  for (std::uint32_t i = 0; i < kParts.size(); ++i) {
    ProbePlan plan(std::to_string(kParts[i]) + " % of the SMs", i);
    for (const program::KernelClass kernel_class : kPartClasses) {
      plan.launch({lone_block_form(kPartWaves * spec.sm_count, kernel_class, spec), kPartKernel});
      plan.wait();
    }
    plans.push_back(plan.take(kPartPasses, offset));
    const double stretch = static_cast<double>(spec.sm_count) / part_sms(kParts[i], spec);
    offset += kBetweenParts +
              scale(kPartKernel * (kPartPasses * kPartClasses.size()), 1.1 * stretch);
  }
  ProbeRun run = probe_run(capture::Substrate::kMps, std::move(plans));
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
      out.push_back({kPartClasses[op], part_sms(kParts[i], spec), spread.middle / whole});
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
  hardware::GpuSpec spec = base;
  spec.part = {0.5, 1.2};
  for (int round = 0; round < 4; ++round) {
    improve_part(parts, spec, &hardware::PartSpec::dram_saturating_sms, 0.01, 1);
    improve_part(parts, spec, &hardware::PartSpec::dark_clock_gain, 1, 2);
  }
  const double error = std::sqrt(part_squares(parts, spec) / static_cast<double>(parts.size()));
  const std::array<double, 2> found{spec.part.dram_saturating_sms, spec.part.dark_clock_gain};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].spread = {parts.size(), found[i] - error, found[i], found[i] + error};
  }
  return out;
}

}  // namespace bubblesim::measure
