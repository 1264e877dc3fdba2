#include "traces/iterations/warm_up.hpp"

#include <algorithm>

#include "sim/base/nearest_rank.hpp"
#include "traces/made_trace.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::int64_t kPercentMatters = 5;
constexpr std::int64_t kPercentSlow = 50;

bool matters(Duration part, Duration whole) { return 100 * part > kPercentMatters * whole; }

void leave_out(RecordedIteration& iteration, IterationUse why) {
  if (iteration.use == IterationUse::kUsed) iteration.use = why;
}

void leave_out_cut(RankPass& pass) {
  std::vector<std::uint64_t> counts;
  for (const RecordedIteration& iteration : pass.recorded) counts.push_back(iteration.operations);
  const std::uint64_t usual = upper_median(counts);
  for (RecordedIteration& iteration : pass.recorded) {
    if (2 * iteration.operations < usual) leave_out(iteration, IterationUse::kFewOperations);
  }
}

struct Allocations {
  std::uint64_t calls = 0;
  Duration time{};
};

std::vector<Allocations> allocations_of(const RankTrace& rank, const RankPass& pass) {
  std::vector<Allocations> sums(pass.recorded.size());
  std::size_t at = 0;
  for (const HostCall& call : rank.host_calls) {  // sorted by start
    if (call.kind != HostCallKind::kAlloc && call.kind != HostCallKind::kFree) continue;
    while (at < sums.size() && pass.recorded[at].host.end <= call.start) ++at;
    if (at == sums.size()) break;
    if (call.start < pass.recorded[at].host.begin) continue;
    ++sums[at].calls;
    sums[at].time += call.duration;
  }
  return sums;
}

void leave_out_storms(const RankTrace& rank, RankPass& pass) {
  const std::vector<Allocations> sums = allocations_of(rank, pass);
  std::vector<std::uint64_t> calls;
  Duration least = Duration::max();
  for (const Allocations& sum : sums) {
    calls.push_back(sum.calls);
    least = std::min(least, sum.time);
  }
  const std::uint64_t usual = upper_median(calls);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    RecordedIteration& iteration = pass.recorded[i];
    if (sums[i].calls <= 2 * usual) continue;
    if (!matters(sums[i].time - least, iteration.host.length())) continue;
    leave_out(iteration, IterationUse::kAllocations);
  }
}

// By iteration: whether kernels matter that no later one launches.
std::vector<bool> have_own_kernels(const RankTrace& rank, const RankPass& pass) {
  std::vector<std::uint32_t> last_seen(rank.names.size(), 0);  // by name: the last iteration
  const auto each_kernel = [&](const auto& visit) {
    for (std::size_t i = 0; i < rank.device_ops.size(); ++i) {
      const DeviceOp& op = rank.device_ops[i];
      const std::uint32_t iteration = pass.iteration_of[i];
      if (iteration == kNone || op.kind != DeviceOpKind::kKernel) continue;
      visit(iteration, op);
    }
  };
  each_kernel([&](std::uint32_t iteration, const DeviceOp& op) {
    last_seen[op.name.index()] = std::max(last_seen[op.name.index()], iteration);
  });
  std::vector<Duration> all(pass.recorded.size());
  std::vector<Duration> never_again(pass.recorded.size());
  each_kernel([&](std::uint32_t iteration, const DeviceOp& op) {
    all[iteration] += op.duration;
    if (last_seen[op.name.index()] == iteration) never_again[iteration] += op.duration;
  });
  std::vector<bool> result(pass.recorded.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = matters(never_again[i], all[i]);
  return result;
}

bool is_slow_start(const RankPass& pass, std::size_t iteration) {
  std::vector<Duration> later;
  for (std::size_t i = iteration + 1; i < pass.recorded.size(); ++i) {
    later.push_back(pass.recorded[i].host.length());
  }
  const Duration usual = upper_median(later);
  return 100 * (pass.recorded[iteration].host.length() - usual) > kPercentSlow * usual;
}

// From the first iteration that is like those after it, all are settled.
void leave_out_start(const RankTrace& rank, RankPass& pass) {
  const std::vector<bool> own_kernels = have_own_kernels(rank, pass);
  for (std::size_t i = 0; i + 1 < pass.recorded.size(); ++i) {
    RecordedIteration& iteration = pass.recorded[i];
    if (own_kernels[i]) leave_out(iteration, IterationUse::kNewKernels);
    if (is_slow_start(pass, i)) leave_out(iteration, IterationUse::kSlowStart);
    if (iteration.use == IterationUse::kUsed) return;
  }
}

}  // namespace

void find_warm_up(const RankTrace& rank, RankPass& pass) {
  if (pass.recorded.size() < 2) return;
  pass.recorded.front().use = IterationUse::kFirst;
  if (rank.provenance.format == kMadeFormat) return;
  leave_out_cut(pass);
  leave_out_storms(rank, pass);
  leave_out_start(rank, pass);
}

}  // namespace bubblesim::traces
