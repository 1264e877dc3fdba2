// Puts the parts of an inspection together.
#include "traces/inspect/inspection.hpp"

#include <algorithm>

#include "traces/inspect/iterations.hpp"
#include "traces/inspect/operation_use.hpp"
#include "traces/inspect/window_use.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

constexpr CounterSpec kEmptyRank{
    "inspect_rank_without_device_operations", Severity::kLoss,
    "ranks without a device operation in the trace: they ran none, or the file lost them"};
constexpr CounterSpec kWithoutShape{
    "inspect_kernel_without_launch_shape", Severity::kNotice,
    "kernels whose grid is not recorded; they are missing from sm_cover"};
constexpr CounterSpec kNegativeDuration{
    "inspect_negative_duration", Severity::kNotice,
    "device operations of negative length; taken as empty for busy and bubble time"};

void count_faults(const RankTrace& rank, CounterSet& counters) {
  std::uint64_t shapeless = 0;
  std::uint64_t negative = 0;
  for (const DeviceOp& op : rank.device_ops) {
    negative += op.duration < Duration{} ? 1 : 0;
    shapeless += op.kind == DeviceOpKind::kKernel && !has_known_shape(rank, op) ? 1 : 0;
  }
  if (rank.device_ops.empty()) counters.add(kEmptyRank);
  counters.add(kWithoutShape, shapeless);
  counters.add(kNegativeDuration, negative);
}

constexpr CounterSpec kWithoutWork{
    "inspect_iterations_without_work", Severity::kLoss,
    "ranks without any device operation in the iterations used; their figures are of the whole "
    "recording"};

/// The device over one pass, as passes repeat.
void set_steady(const RankTrace& rank, const RankPass& pass, const InspectOptions& options,
                RankInspection& result) {
  if (pass.count == 0 || pass.length <= Duration{}) return;
  const RepeatedTrace repeated = repeated_trace(rank, pass);
  if (repeated.trace.device_ops.empty()) {
    if (!rank.device_ops.empty()) result.counters.add(kWithoutWork);
    return;
  }
  const DeviceUse use = device_use(repeated.trace);
  CounterSet counted_already;
  const std::vector<BubbleSegment> segments =
      bubble_segments(repeated.trace, use, options.thresholds, counted_already);
  result.steady_window = repeated.window;
  result.steady = window_use(repeated.trace, use, segments, repeated.window);
}

/// Kernel tables stay whole, so that inspect_job can merge them before it cuts.
RankInspection inspect_uncut(const RankTrace& rank, const RankPass& pass,
                             const InspectOptions& options) {
  RankInspection result;
  result.rank = rank.rank;
  result.world_size = rank.world_size;
  result.device = rank.device;
  result.provenance = rank.provenance;
  result.counters.merge(rank.counters);
  count_faults(rank, result.counters);
  const DeviceUse use = device_use(rank);
  const std::vector<BubbleSegment> segments =
      bubble_segments(rank, use, options.thresholds, result.counters);
  result.window = use.window;
  result.whole = window_use(rank, use, segments, use.window);
  result.counters.merge(pass.counters);
  result.iterations = iterations_of(pass, use);
  set_steady(rank, pass, options, result);
  result.operations = operation_use(rank);
  result.memory = memory_use(rank);
  return result;
}

}  // namespace

RankInspection inspect_rank(const RankTrace& rank) {
  const InspectOptions options;
  RankInspection result = inspect_uncut(rank, *find_rank_pass(rank), options);
  cut_kernels(result.operations, options.top_kernels);
  return result;
}

JobInspection inspect_job(const JobTrace& job, const JobPass& pass,
                          const InspectOptions& options) {
  JobInspection result;
  result.options = options;
  result.iterations_recorded = pass.iterations_recorded();
  result.iterations_used = pass.iterations_used();
  result.iteration_time = pass.iteration_time();
  result.iterations_text = pass.text();
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    RankInspection rank = inspect_uncut(job.ranks[i], pass.ranks[i], options);
    result.whole.add(rank.whole);
    result.representative.add(rank.representative());
    result.steady_ranks += rank.steady ? 1 : 0;
    result.counters.merge(rank.counters);
    merge_operations(result.operations, rank.operations);
    cut_kernels(rank.operations, options.top_kernels);
    result.ranks.push_back(std::move(rank));
  }
  cut_kernels(result.operations, options.top_kernels);
  return result;
}

JobInspection inspect_job(const JobTrace& job, const InspectOptions& options) {
  return inspect_job(job, *find_job_pass(job), options);  // settled ones always are there
}

}  // namespace bubblesim::traces
