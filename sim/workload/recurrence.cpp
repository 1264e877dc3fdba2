#include "sim/workload/recurrence.hpp"

#include <algorithm>
#include <utility>

#include "sim/gpu/waves.hpp"
#include "sim/workload/rank_recurrence.hpp"

namespace bubblesim::workload {
namespace {

// Longest pass, in ns: nine years. Sums stay far from the end of time.
constexpr double kLongestPass = 0x1p58;

// Whether the GPU model ends it after exactly its own duration.
bool lasts_exactly(const program::Op& op, const program::Program& program,
                   const hardware::GpuSpec& spec) {
  if (op.profile == program::kNoIndex) return true;
  const program::KernelProfile& profile = program.profiles[op.profile];
  return gpu::Waves::exact(op.duration, profile.blocks,
                           std::uint64_t{profile.residency.blocks_per_sm} * spec.sm_count);
}

bool times_are_exact(const program::Program& program, const hardware::GpuSpec& spec) {
  double sum = 0;
  for (const program::Op& op : program.ops) {
    if (!lasts_exactly(op, program, spec)) return false;
    sum += static_cast<double>(op.duration.count());
  }
  return sum < kLongestPass;
}

// Each participant comes once.
bool meets_once(const JobProgram& job) {
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> last(job.collectives.size(), kNone);
  std::vector<std::uint32_t> arrivals(job.collectives.size());
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (const program::Op& op : job.ranks[rank].ops) {
      if (op.collective == program::kNoIndex) continue;
      if (std::exchange(last[op.collective], rank) == rank) return false;
      if (++arrivals[op.collective] > job.collectives[op.collective].participants) return false;
    }
  }
  return true;
}

// Streams that copy, of which each has one copy at a time.
std::size_t copying_streams(const program::Program& program) {
  std::vector<bool> copies(program.stream_count);
  for (const program::Op& op : program.ops) {
    if (op.kind == program::WorkKind::kCopy) copies[op.stream] = true;
  }
  return static_cast<std::size_t>(std::count(copies.begin(), copies.end(), true));
}

/// The ranks of a job, each as far as it can go without the others.
class Recurrence {
 public:
  Recurrence(const JobProgram& job, std::uint32_t passes) : board_(job) {
    ranks_.reserve(job.ranks.size());
    for (std::uint32_t i = 0; i < job.ranks.size(); ++i) {
      ranks_.emplace_back(job.ranks[i], i, passes, board_);
    }
  }

  std::optional<std::vector<PassTimes>> run() {
    for (RankRecurrence& rank : ranks_) rank.run();
    settle();
    while (RankRecurrence* const first = first_of_stalled()) {
      first->make_next_call();
      first->run();
      settle();
    }
    std::vector<PassTimes> times;
    for (RankRecurrence& rank : ranks_) {
      if (rank.ambiguous() || !rank.finished() || rank.looks_up_late()) return std::nullopt;
      times.push_back(rank.take());
    }
    return times;
  }

 private:
  // Ranks that waited for a meeting go on, which may complete others.
  void settle() {
    while (const auto meeting = board_.take_complete()) {
      for (const MeetingBoard::RankArrival& arrival : meeting->arrivals) {
        ranks_[arrival.rank].met(arrival.op, meeting->last);
      }
      for (const MeetingBoard::RankArrival& arrival : meeting->arrivals) ranks_[arrival.rank].run();
    }
  }

  // Ranks stall where a thread waits for what is not known yet while others could call. What is not
  // known waits for calls to come, so that it does not end before the first of these.
  RankRecurrence* first_of_stalled() {
    RankRecurrence* first = nullptr;
    SimTime at = SimTime::max();
    for (RankRecurrence& rank : ranks_) {
      const SimTime call = rank.next_call();
      if (call >= at) continue;
      first = &rank;
      at = call;
    }
    return first;
  }

  MeetingBoard board_;
  std::vector<RankRecurrence> ranks_;
};

}  // namespace

bool has_recurrence(const JobProgram& job, const hardware::GpuSpec& spec) {
  const std::size_t copy_engines = std::max(spec.copy_engines, 1U);
  const auto is_simple = [&](const program::Program& program) {
    return program.own_kernels == program::OwnKernels::kAsRecorded &&
           copying_streams(program) <= copy_engines && times_are_exact(program, spec);
  };
  const auto is_recorded = [](const JoinedCollective& collective) {
    return collective.transfer == program::kNoIndex;
  };
  return !job.shared_hosts && std::ranges::all_of(job.ranks, is_simple) &&
         std::ranges::all_of(job.collectives, is_recorded) && meets_once(job);
}

std::optional<std::vector<PassTimes>> pass_times(const JobProgram& job, std::uint32_t passes) {
  const bool can_repeat =
      std::ranges::none_of(job.collectives, &JoinedCollective::buffered) &&
      std::ranges::all_of(job.ranks, [passes](const program::Program& program) {
        return program.ops.size() < program::kNoIndex / passes;
      });
  if (passes > 1 && !can_repeat) return std::nullopt;
  return Recurrence(job, passes).run();
}

}  // namespace bubblesim::workload
