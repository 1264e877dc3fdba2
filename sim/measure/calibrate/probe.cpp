#include "sim/measure/calibrate/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/measure/calibrate/probe_plan.hpp"

namespace bubblesim::measure {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.size(), interpolated_quantile(values, 0.25), interpolated_quantile(values, 0.5),
          interpolated_quantile(values, 0.75)};
}

ProbeRun probe_run(policy::SharingMode mode, std::vector<capture::JobPlan> plans) {
  ProbeRun run;
  run.setup.substrate = capture::substrate_for(mode);
  run.sharing.mode = mode;
  run.shares.resize(plans.size());
  for (capture::JobPlan& plan : plans) run.setup.jobs.push_back({std::move(plan)});
  return run;
}

ProbeRun rehearsal(const ProbeRun& run) {
  std::set<ProbeKernel> kernels;
  for (const capture::RigJob& job : run.setup.jobs) {
    for (const program::Op& op : job.plan.program.ops) {
      if (is_kernel(op.kind)) kernels.insert({job.plan.forms[op.profile], op.duration});
    }
  }
  ProbePlan plan("rehearsal", 0);
  for (const ProbeKernel& kernel : kernels) plan.launch(kernel);
  plan.wait();
  return probe_run(policy::SharingMode::kSpatial, {plan.take(1)});
}

Finding finding_of(std::string key, std::vector<double> values, double grain) {
  Finding finding{std::move(key), spread_of(std::move(values)), {}};
  const Spread& spread = finding.spread;
  const double width = spread.high - spread.low;
  if (spread.count < kLeastCount) {
    finding.missing = fmt::format("{} measurements, {} are needed", spread.count, kLeastCount);
  } else if (spread.middle < 0) {
    finding.missing = fmt::format("the median of {} measurements is negative", spread.count);
  } else if (width > grain && width > 0.5 * spread.middle) {
    finding.missing = fmt::format("the middle half of {} measurements is {:.0f} % of the median "
                                  "wide", spread.count, 100 * width / spread.middle);
  }
  return finding;
}

Finding at_least_zero(Finding finding) {
  const Spread& spread = finding.spread;
  const bool around = spread.low < 0 && spread.high > 0;
  const bool next_to = spread.middle < 0 && spread.middle > -kTimeGrain;
  if (spread.count < kLeastCount || (!around && !next_to)) return finding;
  finding.spread.middle = std::max(spread.middle, 0.0);
  finding.spread.high = std::max(spread.high, 0.0);
  finding.missing.clear();
  return finding;
}

double length_of(const capture::OperationRecord& operation) {
  return static_cast<double>(to_ns(operation.end - operation.start));
}

std::vector<capture::OperationRecord> by_start(const capture::JobRecord& record) {
  std::vector<capture::OperationRecord> list = record.operations;
  std::ranges::sort(list, {}, &capture::OperationRecord::start);
  return list;
}

}  // namespace bubblesim::measure
