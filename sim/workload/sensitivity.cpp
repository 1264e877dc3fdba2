#include "sim/workload/sensitivity.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace bubblesim::workload {
namespace {

constexpr double kTwice = 2.0;
constexpr std::int64_t kTrifle = 100;  ///< of an iteration: this part

// Most collectives of which the recording has one rank alone.
bool lacks_other_ranks(const JobProgram& job) {
  std::size_t all = 0;
  std::size_t joined = 0;
  for (const program::Program& program : job.ranks) {
    for (const program::Op& op : program.ops) {
      if (op.kind != program::WorkKind::kCollective) continue;
      ++all;
      if (op.collective != program::kNoIndex) ++joined;
    }
  }
  return 2 * joined < all;
}

// The rank that comes last to collectives, if it does by more than a trifle.
std::optional<traces::Straggler> straggler_of(const JobProgram& job, Duration iteration) {
  const auto most = std::ranges::max_element(job.lateness);
  if (most == job.lateness.end() || *most < iteration / kTrifle) return std::nullopt;
  return traces::Straggler{job.ranks[static_cast<std::size_t>(most - job.lateness.begin())].rank,
                           *most};
}

}  // namespace

Duration mean_iteration(const ReplayReport& report) {
  Duration sum{};
  for (const RankReplay& rank : report.ranks) {
    const Duration total = std::accumulate(rank.simulated.begin(), rank.simulated.end(),
                                           Duration{});
    if (!rank.simulated.empty()) sum += total / static_cast<std::int64_t>(rank.simulated.size());
  }
  return report.ranks.empty() ? sum : sum / static_cast<std::int64_t>(report.ranks.size());
}

Result<Duration> iteration_with(std::initializer_list<WhatIfTarget> targets, const JobProgram& job,
                                const hardware::GpuSpec& spec) {
  JobProgram changed = job;
  for (const WhatIfTarget target : targets) {
    apply({.target = target, .name = {}, .rank = {}, .speed = kTwice}, changed);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const ReplayReport report, repeat_alone(changed, spec));
  return mean_iteration(report);
}

Result<traces::Sensitivities> find_sensitivities(const JobProgram& job,
                                                 const hardware::GpuSpec& spec) {
  BUBBLESIM_ASSIGN_OR_RETURN(const ReplayReport unchanged, repeat_alone(job, spec));
  traces::Sensitivities found;
  found.iteration = mean_iteration(unchanged);
  found.alone = lacks_other_ranks(job);
  found.straggler = straggler_of(job, found.iteration);
  const auto measure = [&](std::initializer_list<WhatIfTarget> targets,
                           double& sensitivity) -> Result<void> {
    BUBBLESIM_ASSIGN_OR_RETURN(const Duration faster, iteration_with(targets, job, spec));
    const double whole = to_seconds(found.iteration);
    // Lags of calls that no longer wait may make a replay longer by a trifle.
    if (whole > 0) sensitivity = std::max(0.0, kTwice * (1 - to_seconds(faster) / whole));
    return {};
  };
  using enum WhatIfTarget;
  double all = 1;
  BUBBLESIM_RETURN_IF_ERROR(measure({kAllKernels}, found.kernels));
  BUBBLESIM_RETURN_IF_ERROR(measure({kCopies}, found.copies));
  BUBBLESIM_RETURN_IF_ERROR(measure({kLink}, found.link));
  BUBBLESIM_RETURN_IF_ERROR(measure({kHost}, found.host));
  BUBBLESIM_RETURN_IF_ERROR(measure({kAllKernels, kCopies, kLink, kHost}, all));
  found.fixed = std::max(0.0, 1 - all);
  return found;
}

}  // namespace bubblesim::workload
