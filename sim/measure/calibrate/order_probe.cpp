#include <algorithm>
#include <array>

#include "sim/measure/calibrate/probe_plan.hpp"
#include "sim/measure/calibrate/probes.hpp"

namespace bubblesim::measure {
namespace {

using capture::OperationRecord;

constexpr Duration kOrderLength = std::chrono::milliseconds(240);
constexpr std::uint64_t kOrderWaves = 40;
constexpr Duration kOrderKernel = std::chrono::milliseconds(1);
constexpr std::array<Duration, 2> kOrderPauses{std::chrono::microseconds(310),
                                          std::chrono::microseconds(730)};
// Of the other's kernel: less is too close to its last wave to tell.
constexpr double kLeastLeft = 0.2;
constexpr double kOrderGrain = 0.5;

}  // namespace

ProbeRun order_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form =
      lone_block_form(kOrderWaves * spec.sm_count, program::KernelClass::kCompute, spec);
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan("order " + std::to_string(client), client);
    plan.pause(kOrderPauses[client]);
    plan.launch({form, kOrderKernel});
    plan.wait();
    plans.push_back(plan.take(0));
  }
  ProbeRun run = probe_run(policy::SharingMode::kMps, std::move(plans));
  run.setup.limit = kOrderLength;
  return run;
}

std::vector<Finding> order_findings(const Records& records) {
  std::vector<double> in_line;
  for (std::size_t client = 0; records.size() == 2 && client < 2; ++client) {
    for (const OperationRecord& second : records[client].operations) {
      for (const OperationRecord& first : records[1 - client].operations) {
        if (first.start > second.returned || first.end < second.returned) continue;
        const double left = static_cast<double>(to_ns(first.end - second.returned));
        if (left < kLeastLeft * static_cast<double>(to_ns(kOrderKernel))) continue;
        const double waited = static_cast<double>(to_ns(second.start - second.returned));
        in_line.push_back(2 * waited > left ? 1 : 0);
      }
    }
  }
  return {finding_of("client_order", std::move(in_line), kOrderGrain)};
}

}  // namespace bubblesim::measure
