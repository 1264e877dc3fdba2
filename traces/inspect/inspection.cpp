#include "traces/inspect/inspection.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

// Puts the parts of an inspection together.

// ---- Kernel, collective, copy and memory tables; a part of inspect_rank and inspect_job.

using KernelKey = std::pair<std::string, DeviceOpKind>;

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

template <class Kind>
void add_transfer(Kind kind, Duration time, std::uint64_t bytes,
                  std::map<Kind, TransferUse<Kind>>& uses) {
  TransferUse<Kind>& use = uses[kind];
  use.kind = kind;
  ++use.count;
  use.total += time;
  use.bytes += bytes;
  use.without_bytes += bytes == 0 ? 1 : 0;
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
  std::map<CollectiveKind, TransferUse<CollectiveKind>> collectives;
  std::map<CopyDirection, TransferUse<CopyDirection>> copies;
  const Collective not_recorded;
  OperationUse sums;
  for (const DeviceOp& op : rank.device_ops) {
    ++sums.operations;
    sums.total += op.duration;
    switch (op.kind) {
      case DeviceOpKind::kCollective: {
        const bool recorded = op.collective < rank.collectives.size();
        const Collective& record = recorded ? rank.collectives[op.collective] : not_recorded;
        add_transfer(record.kind, op.duration, record.bytes, collectives);
        [[fallthrough]];
      }
      case DeviceOpKind::kKernel:
        add_kernel(rank, op, kernels);
        break;
      case DeviceOpKind::kCopy:
        add_transfer(op.direction, op.duration, op.bytes, copies);
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
  const auto kind_of = [](const auto& use) { return use.kind; };
  merge_list<CollectiveKind>(sums.collectives, other.collectives, kind_of);
  merge_list<CopyDirection>(sums.copies, other.copies, kind_of);
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

namespace {

// Sums over a window: busy, bubbles by cause and length, gaps, SM cover.

std::size_t bucket_of(Duration length) {
  const auto limit = std::ranges::upper_bound(kLengthBucketLimits, length);
  return static_cast<std::size_t>(limit - kLengthBucketLimits.begin());
}

std::size_t index_of(BubbleCause cause) { return static_cast<std::size_t>(cause); }

void add_bubbles(const DeviceUse& use, const std::vector<BubbleSegment>& segments,
                 Interval window, WindowUse& sums) {
  auto segment = segments.begin();
  for (const Interval& bubble : gaps_within(use.own, window)) {
    LengthBucket& bucket = sums.lengths[bucket_of(bubble.length())];
    ++sums.bubbles;
    ++bucket.count;
    bucket.total += bubble.length();
    sums.longest_bubble = std::max(sums.longest_bubble, bubble.length());
    while (segment != segments.end() && segment->span.end <= bubble.begin) ++segment;
    for (auto part = segment; part != segments.end() && part->span.begin < bubble.end; ++part) {
      const Duration length = std::min(part->span.end, bubble.end) -
                              std::max(part->span.begin, bubble.begin);
      bucket.by_cause[index_of(part->cause)] += length;
      sums.by_cause[index_of(part->cause)] += length;
    }
  }
}

void add_gaps(const DeviceUse& use, Interval window, WindowUse& sums) {
  for (const Interval& gap : gaps_within(use.busy, window)) {
    ++sums.gaps;
    sums.gaps_100us += gap.length() >= std::chrono::microseconds{100} ? 1 : 0;
    sums.gaps_1ms += gap.length() >= std::chrono::milliseconds{1} ? 1 : 0;
  }
}

struct BlockChange {
  TraceTime at{};
  std::int64_t blocks = 0;
};

std::vector<BlockChange> block_changes(const RankTrace& rank, Interval window) {
  std::vector<BlockChange> changes;
  for (const DeviceOp& op : rank.device_ops) {
    const TraceTime from = std::max(op.start, window.begin);
    const TraceTime to = std::min(op.end(), window.end);
    if (from >= to || !has_known_shape(rank, op)) continue;
    constexpr std::uint64_t kManyBlocks = std::uint64_t{1} << 32;  // keeps the sum within range
    const auto blocks = static_cast<std::int64_t>(
        std::min(rank.shapes[op.shape].blocks(), kManyBlocks));
    changes.push_back({from, blocks});
    changes.push_back({to, -blocks});
  }
  std::ranges::sort(changes, {}, &BlockChange::at);
  return changes;
}

void add_sm_cover(const RankTrace& rank, Interval window, WindowUse& sums) {
  const auto sms = static_cast<std::int64_t>(rank.device.sm_count);
  const std::vector<BlockChange> changes = block_changes(rank, window);
  if (sms == 0 || changes.empty()) return;
  sums.sm_known = window.length();
  std::int64_t blocks = 0;
  TraceTime last = window.begin;
  for (const BlockChange& change : changes) {
    const double share = static_cast<double>(std::min(blocks, sms)) / static_cast<double>(sms);
    sums.sm_time_ns += share * static_cast<double>(to_ns(change.at - last));
    blocks += change.blocks;
    last = change.at;
  }
}

}  // namespace

WindowUse window_use(const RankTrace& rank, const DeviceUse& use,
                     const std::vector<BubbleSegment>& segments, Interval window) {
  WindowUse sums;
  sums.length = window.length();
  if (sums.length <= Duration{}) return sums;
  const Intervals own = clip(use.own, window);
  std::vector<Interval> any_collective = use.collective;
  any_collective.insert(any_collective.end(), use.peer.begin(), use.peer.end());
  const Intervals communication = clip(unite(std::move(any_collective)), window);
  sums.busy = total_length(clip(use.busy, window));
  sums.own = total_length(own);
  sums.communication = total_length(communication);
  sums.overlapped = total_length(intersect(own, communication));
  add_bubbles(use, segments, window, sums);
  add_gaps(use, window, sums);
  add_sm_cover(rank, window, sums);
  return sums;
}

std::optional<double> WindowUse::sm_cover() const {
  if (sm_known <= Duration{}) return std::nullopt;
  return sm_time_ns / static_cast<double>(to_ns(sm_known));
}

void WindowUse::add(const WindowUse& other) {
  length += other.length;
  busy += other.busy;
  own += other.own;
  communication += other.communication;
  overlapped += other.overlapped;
  for (std::size_t cause = 0; cause < kBubbleCauseCount; ++cause) {
    by_cause[cause] += other.by_cause[cause];
    for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
      lengths[i].by_cause[cause] += other.lengths[i].by_cause[cause];
    }
  }
  for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
    lengths[i].count += other.lengths[i].count;
    lengths[i].total += other.lengths[i].total;
  }
  bubbles += other.bubbles;
  longest_bubble = std::max(longest_bubble, other.longest_bubble);
  gaps += other.gaps;
  gaps_100us += other.gaps_100us;
  gaps_1ms += other.gaps_1ms;
  sm_time_ns += other.sm_time_ns;
  sm_known += other.sm_known;
}

Iterations iterations_of(const RankPass& pass, const DeviceUse& use) {
  Iterations iterations;
  iterations.marked = pass.marked;
  iterations.used = pass.count;
  iterations.host_time = pass.host_time;
  iterations.device_time = pass.device_time;
  iterations.length = pass.length;
  for (const RecordedIteration& recorded : pass.recorded) {
    Iteration iteration;
    iteration.number = pass.marked ? recorded.number : -1;
    iteration.span = recorded.host;
    iteration.use = recorded.use;
    iteration.busy = total_length(clip(use.busy, iteration.span));
    iteration.own = total_length(clip(use.own, iteration.span));
    iterations.all.push_back(iteration);
  }
  return iterations;
}

Duration Iterations::steady_mean() const {
  return used == 0 ? Duration{} : length / static_cast<std::int64_t>(used);
}

Duration Iterations::shortest() const {
  Duration least = all.empty() ? Duration{} : Duration::max();
  for (const Iteration& iteration : all) least = std::min(least, iteration.span.length());
  return least;
}

Duration Iterations::longest() const {
  Duration most{};
  for (const Iteration& iteration : all) most = std::max(most, iteration.span.length());
  return most;
}

}  // namespace bubblesim::traces
