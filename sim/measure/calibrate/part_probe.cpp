#include <algorithm>
#include <array>

#include "sim/measure/calibrate/part_fit.hpp"
#include "sim/measure/calibrate/probe_plan.hpp"
#include "sim/measure/calibrate/probes.hpp"

namespace bubblesim::measure {
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
