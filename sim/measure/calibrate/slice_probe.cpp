#include "sim/measure/calibrate/probes.hpp"

#include <algorithm>

#include "sim/measure/calibrate/probe_plan.hpp"

namespace bubblesim::measure {
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

/// Process's own time at which it went away, in steps of its kernels.
std::vector<double> absences(const capture::JobRecord& record, Turns& turns) {
  const auto list = by_start(record);
  std::vector<double> steps;
  for (std::size_t i = 1; i < list.size(); ++i) {
    steps.push_back(static_cast<double>(to_ns(list[i].end - list[i - 1].end)));
  }
  turns.kernel = spread_of(steps).middle;
  std::vector<double> own;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] - turns.kernel < kLeastAway * turns.kernel) continue;
    turns.away.push_back(steps[i] - turns.kernel);
    own.push_back(static_cast<double>(i) * turns.kernel);
  }
  return own;
}

}  // namespace

ProbeRun slice_run(const hardware::GpuSpec& spec) {
  const std::vector<ProbeKernel> kernels = filling_row(spec);
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan("slices " + std::to_string(client), client);
    plan.row(kernels);
    plans.push_back(plan.take(0));
  }
  ProbeRun run = probe_run(policy::SharingMode::kTimeSliced, std::move(plans));
  run.setup.limit = kSliceLength;
  return run;
}

Turns turns_of(const capture::JobRecord& record) {
  Turns turns;
  const std::vector<double> own = absences(record, turns);
  if (own.size() >= 2) turns.slice = slope(own);
  return turns;
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
