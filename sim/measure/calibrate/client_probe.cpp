#include "sim/measure/calibrate/probes.hpp"

#include <algorithm>

#include "sim/measure/calibrate/probe_plan.hpp"

namespace bubblesim::measure {
namespace {

constexpr Duration kAlone = std::chrono::milliseconds(40);
constexpr Duration kClientLength = std::chrono::milliseconds(240);

struct End {
  Duration at{};
  std::size_t client = 0;
};

std::vector<End> ends_of(const Records& records) {
  std::vector<End> ends;
  for (std::size_t client = 0; client < records.size(); ++client) {
    for (const auto& operation : records[client].operations) {
      ends.push_back({operation.end, client});
    }
  }
  std::ranges::stable_sort(ends, {}, &End::at);
  return ends;
}

/// A kernel's duration before anybody else came.
Spread alone_of(const Records& records) {
  Duration until = Duration::max();
  for (const auto& operation : records[1].operations) until = std::min(until, operation.called);
  std::vector<double> lengths;
  for (const auto& operation : records[0].operations) {
    if (operation.end < until) lengths.push_back(length_of(operation));
  }
  return spread_of(std::move(lengths));
}

}  // namespace

ProbeRun client_run(const hardware::GpuSpec& spec) {
  const std::vector<ProbeKernel> kernels = filling_row(spec);
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan("clients " + std::to_string(client), client);
    plan.row(kernels);
    plans.push_back(plan.take(0, client * kAlone));
  }
  ProbeRun run = probe_run(capture::Substrate::kMps, std::move(plans));
  run.setup.limit = kClientLength;
  return run;
}

std::vector<Finding> client_findings(const Records& records) {
  std::vector<double> switches;
  const Spread alone = records.size() == 2 ? alone_of(records) : Spread{};
  if (alone.count >= kLeastCount) {
    const std::vector<End> ends = ends_of(records);
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (ends[i].client == ends[i - 1].client) continue;
      switches.push_back(static_cast<double>(to_ns(ends[i].at - ends[i - 1].at)) - alone.middle);
    }
  }
  Finding finding = finding_of("client_switch", std::move(switches), kTimeGrain);
  // Next to nothing, and on either side of it: there is no such cost.
  if (finding.spread.count >= kLeastCount && finding.spread.middle < 0 &&
      finding.spread.middle > -kTimeGrain) {
    finding.spread.middle = 0;
    finding.missing.clear();
  }
  return {std::move(finding)};
}

}  // namespace bubblesim::measure
