// Puts the parts of an inspection together.
#include "traces/inspect/inspection.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/inspect/window_use.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

// ---- Kernel, collective, copy and memory tables; a part of inspect_rank and inspect_job.

using KernelKey = std::pair<std::string, DeviceOpKind>;

template <class Use>
void add_bytes(Use& use, std::uint64_t bytes) {
  use.bytes += bytes;
  use.without_bytes += bytes == 0 ? 1 : 0;
}

/// Most time first, ties by key: the order of the map.
template <class Map>
auto by_time(Map&& uses) {
  std::vector<typename std::decay_t<Map>::mapped_type> list;
  list.reserve(uses.size());
  for (auto& [key, use] : uses) list.push_back(std::move(use));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.total > b.total; });
  return list;
}

CollectiveKind kind_of(const RankTrace& rank, const DeviceOp& op) {
  if (op.collective >= rank.collectives.size()) return CollectiveKind::kUnknown;
  return rank.collectives[op.collective].kind;
}

std::uint64_t collective_bytes(const RankTrace& rank, const DeviceOp& op) {
  return op.collective < rank.collectives.size() ? rank.collectives[op.collective].bytes : 0;
}

void add_kernel(const RankTrace& rank, const DeviceOp& op,
                std::map<std::pair<NameId, DeviceOpKind>, KernelUse>& kernels) {
  KernelUse& use = kernels[{op.name, op.kind}];
  if (use.count == 0) {
    use.kind = op.kind;
    if (op.name.index() < rank.names.size()) use.name = rank.names[op.name];
  }
  ++use.count;
  use.total += op.duration;
}

void add_collective(const RankTrace& rank, const DeviceOp& op,
                    std::map<CollectiveKind, CollectiveUse>& collectives) {
  const CollectiveKind kind = kind_of(rank, op);
  CollectiveUse& use = collectives[kind];
  use.kind = kind;
  ++use.count;
  use.total += op.duration;
  add_bytes(use, collective_bytes(rank, op));
}

void add_copy(const DeviceOp& op, std::map<CopyDirection, CopyUse>& copies) {
  CopyUse& use = copies[op.direction];
  use.direction = op.direction;
  ++use.count;
  use.total += op.duration;
  add_bytes(use, op.bytes);
}

template <class Key, class Use, class KeyOf>
void merge_list(std::vector<Use>& sums, const std::vector<Use>& others, KeyOf key_of) {
  std::map<Key, Use> merged;
  for (Use& use : sums) merged.emplace(key_of(use), std::move(use));
  for (const Use& use : others) {
    const auto [place, fresh] = merged.try_emplace(key_of(use), use);
    if (fresh) continue;
    place->second.count += use.count;
    place->second.total += use.total;
    if constexpr (requires { use.bytes; }) {
      place->second.bytes += use.bytes;
      place->second.without_bytes += use.without_bytes;
    }
  }
  sums = by_time(std::move(merged));
}

KernelKey kernel_key(const KernelUse& use) { return {use.name, use.kind}; }

// Sums over all of the rank's operations; no list is cut.
OperationUse operation_use(const RankTrace& rank) {
  std::map<std::pair<NameId, DeviceOpKind>, KernelUse> kernels;
  std::map<CollectiveKind, CollectiveUse> collectives;
  std::map<CopyDirection, CopyUse> copies;
  OperationUse sums;
  for (const DeviceOp& op : rank.device_ops) {
    ++sums.operations;
    sums.total += op.duration;
    switch (op.kind) {
      case DeviceOpKind::kCollective:
        add_collective(rank, op, collectives);
        [[fallthrough]];
      case DeviceOpKind::kKernel:
        add_kernel(rank, op, kernels);
        break;
      case DeviceOpKind::kCopy:
        add_copy(op, copies);
        break;
      case DeviceOpKind::kMemset:
        ++sums.memsets;
        sums.memset_bytes += op.bytes;
        break;
    }
  }
  merge_list<KernelKey>(sums.kernels, by_time(std::move(kernels)), kernel_key);
  sums.kernel_names = sums.kernels.size();
  sums.collectives = by_time(std::move(collectives));
  sums.copies = by_time(std::move(copies));
  return sums;
}

// Adds `other` to `sums` by name, kind and direction, and sorts.
void merge_operations(OperationUse& sums, const OperationUse& other) {
  sums.operations += other.operations;
  sums.total += other.total;
  sums.memsets += other.memsets;
  sums.memset_bytes += other.memset_bytes;
  merge_list<KernelKey>(sums.kernels, other.kernels, kernel_key);
  merge_list<CollectiveKind>(sums.collectives, other.collectives,
                             [](const CollectiveUse& use) { return use.kind; });
  merge_list<CopyDirection>(sums.copies, other.copies,
                            [](const CopyUse& use) { return use.direction; });
  sums.kernel_names = sums.kernels.size();
}

// Keeps the first `count` kernels; 0 keeps all.
void cut_kernels(OperationUse& sums, std::size_t count) {
  if (count > 0 && sums.kernels.size() > count) sums.kernels.resize(count);
}

MemoryUse memory_use(const RankTrace& rank) {
  MemoryUse use;
  use.samples = rank.memory.size();
  for (const MemorySample& sample : rank.memory) {
    use.allocated_high_water_bytes =
        std::max(use.allocated_high_water_bytes, sample.allocated_bytes);
    use.reserved_high_water_bytes = std::max(use.reserved_high_water_bytes, sample.reserved_bytes);
  }
  return use;
}

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
