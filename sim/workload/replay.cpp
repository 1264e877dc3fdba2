#include "sim/workload/replay.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/program/rules.hpp"
#include "sim/workload/lone_job.hpp"
#include "sim/workload/recurrence.hpp"

namespace bubblesim::workload {
namespace {

double relative_error(Duration simulated, Duration recorded) {
  if (recorded.count() == 0) return simulated.count() == 0 ? 0.0 : 1.0;
  return std::abs(to_seconds(simulated) - to_seconds(recorded)) / to_seconds(recorded);
}

/// Notes when the iterations of one rank begin, and when its pass ends.
class IterationClock final : public RunObserver {
 public:
  void on_iteration(ProgramRun&, std::uint32_t, SimTime now) override {
    times.marks.push_back(now);
  }
  void on_op_finished(const OpRecord& record) override { times.last_op_end = record.end; }
  void on_pass_finished(ProgramRun&, SimTime now) override { times.end = now; }
  void on_host_call(const HostCallRecord&) override { ++times.calls; }

  PassTimes times;
};

// Joins the threads of each hand-over once. That which begins a thread's pass with the marked
// thread's first iteration (tie_free_threads) says nothing of what they do for each other.
bool join_threads(const program::Program& program, std::vector<bool>& joined) {
  bool any = false;
  for (std::uint32_t thread = 0; thread < program.threads.size(); ++thread) {
    for (const program::Step& step : program.threads[thread].steps) {
      const program::StepDetail* from = program::hand_over(program, step);
      if (from == nullptr || from->after_rank != program::kNoIndex) continue;
      if (joined[from->after_thread] == joined[thread]) continue;
      const program::Step& before = program.threads[from->after_thread].steps[from->after_step];
      if (before.kind == program::StepKind::kIteration) continue;
      joined[thread] = joined[from->after_thread] = any = true;
    }
  }
  return any;
}

bool waits_for_device(const program::Step& step) {
  return step.kind == program::StepKind::kWaitStream ||
         step.kind == program::StepKind::kWaitDevice || step.kind == program::StepKind::kWaitOp ||
         step.kind == program::StepKind::kLaunchAndWait;
}

/// By operation: whether it paces the job. Not one of a thread that waits for its own work and
/// shares no hand-overs with the marked thread, directly or through others.
std::vector<bool> pacing_ops(const program::Program& program) {
  std::vector<bool> joined(program.threads.size());
  if (program.marked_thread < joined.size()) joined[program.marked_thread] = true;
  while (join_threads(program, joined)) {
  }
  std::vector<bool> ops(program.ops.size());
  for (std::size_t thread = 0; thread < joined.size(); ++thread) {
    const std::vector<program::Step>& steps = program.threads[thread].steps;
    if (!joined[thread] && std::ranges::any_of(steps, waits_for_device)) continue;
    for (const program::Step& step : steps) {
      for (std::uint32_t i = 0; i < step.count; ++i) ops[step.target + i] = true;
    }
  }
  if (std::ranges::find(ops, true) == ops.end()) ops.assign(ops.size(), true);
  return ops;
}

constexpr std::uint64_t kPasses = kPassesToSettle + kPassesCounted;

/// From the end of the passes ignored to that of those averaged.
struct CountedPasses {
  SimTime begin{};
  SimTime end{};

  [[nodiscard]] Duration mean() const {
    return (end - begin) / static_cast<std::int64_t>(kPassesCounted);
  }
};

/// The passes of one rank, on the host, and on the device: there they end when as many operations
/// that pace the job have ended as so many passes have.
struct RankPasses {
  CountedPasses host;
  CountedPasses device;
  std::uint64_t calls = 0;
};

/// Finds them in a run.
class PassClock final : public RunObserver {
 public:
  explicit PassClock(const program::Program& program)
      : ops_(pacing_ops(program)),
        ops_a_pass_(static_cast<std::uint64_t>(std::ranges::count(ops_, true))) {}

  void on_iteration(ProgramRun& run, std::uint32_t iteration, SimTime now) override {
    if (iteration == run.program().iterations) note(++passes_ended_, now, found.host);
  }
  void on_op_finished(const OpRecord& record) override {
    if (!ops_[record.op]) return;
    if (++ops_ended_ % ops_a_pass_ == 0) note(ops_ended_ / ops_a_pass_, record.end, found.device);
  }
  void on_host_call(const HostCallRecord&) override { ++found.calls; }

  RankPasses found;

 private:
  static void note(std::uint64_t passes, SimTime now, CountedPasses& counted) {
    if (passes == kPassesToSettle) counted.begin = now;
    if (passes == kPasses) counted.end = now;
  }

  std::vector<bool> ops_;
  std::uint64_t ops_a_pass_ = 0;
  std::uint64_t ops_ended_ = 0;
  std::uint64_t passes_ended_ = 0;
};

/// Finds them among the times of kPasses passes.
RankPasses passes_of(const program::Program& program, const PassTimes& times) {
  RankPasses found;
  found.host = {times.ends[kPassesToSettle - 1], times.ends.back()};
  found.calls = times.calls;
  const std::vector<bool> pacing = pacing_ops(program);
  std::vector<SimTime> ends;
  ends.reserve(times.op_ends.size());
  for (std::size_t i = 0; i < times.op_ends.size(); ++i) {
    if (pacing[i % pacing.size()]) ends.push_back(times.op_ends[i]);
  }
  if (ends.empty()) return found;
  const auto settled = ends.begin() + static_cast<std::ptrdiff_t>(
                                          ends.size() / kPasses * kPassesToSettle) - 1;
  std::nth_element(ends.begin(), settled, ends.end());
  found.device = {*settled, *std::max_element(settled, ends.end())};
  return found;
}

/// A host that nothing makes wait gains on the device until a launch queue is full, long after the
/// passes that are counted: from this much on the device's pace is the job's.
constexpr double kGains = 1.01;

Duration mean_pass(const RankPasses& passes) {
  const Duration host = passes.host.mean();
  const Duration device = passes.device.mean();
  return to_seconds(device) > kGains * to_seconds(host) ? device : host;
}

RankReplay repeated(const program::Program& program, const RankPasses& passes) {
  RankReplay rank;
  rank.rank = program.rank;
  for (const Duration iteration : program.recorded_iterations) rank.recorded_span += iteration;
  rank.simulated_span = mean_pass(passes);
  const auto iterations = static_cast<std::int64_t>(std::max(1U, program.iterations));
  rank.recorded = {rank.recorded_span / iterations};
  rank.simulated = {rank.simulated_span / iterations};
  return rank;
}

RankReplay compare(const program::Program& program, const PassTimes& times) {
  RankReplay rank;
  rank.rank = program.rank;
  rank.recorded_span = program.recorded_span;
  // The pass ends with its last operation or its last call, whichever is later.
  rank.simulated_span = std::max({times.last_op_end, times.marks.back(), times.end}) -
                        (kSimStart + program.start_offset);
  if (!program.marked) {
    rank.recorded = {rank.recorded_span};
    rank.simulated = {rank.simulated_span};
    return rank;
  }
  rank.recorded = program.recorded_iterations;
  for (std::size_t i = 0; i + 1 < times.marks.size(); ++i) {
    rank.simulated.push_back(times.marks[i + 1] - times.marks[i]);
  }
  return rank;
}

ReplayReport compare(const JobProgram& job, const std::vector<PassTimes>& times) {
  ReplayReport report;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    report.device_ops += job.ranks[i].ops.size();
    report.events += 2 * job.ranks[i].ops.size() + times[i].calls;
    report.ranks.push_back(compare(job.ranks[i], times[i]));
  }
  return report;
}

Result<ReplayReport> replay_by_events(const JobProgram& job, const hardware::GpuSpec& spec) {
  std::vector<IterationClock> clocks(job.ranks.size());
  LoneJob lone(job, spec, {}, pointers_to(clocks));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  std::vector<PassTimes> times;
  for (IterationClock& clock : clocks) times.push_back(std::move(clock.times));
  return compare(job, times);
}

Result<std::vector<RankPasses>> repeated_passes(const JobProgram& job,
                                                const hardware::GpuSpec& spec) {
  std::vector<RankPasses> passes;
  if (const auto times = has_recurrence(job, spec) ? pass_times(job, kPasses) : std::nullopt) {
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      passes.push_back(passes_of(job.ranks[i], (*times)[i]));
    }
    return passes;
  }
  std::vector<PassClock> clocks(job.ranks.begin(), job.ranks.end());
  LoneJob lone(job, spec, {Repeat::kLoop, kPasses, {}}, pointers_to(clocks));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  for (PassClock& clock : clocks) passes.push_back(std::move(clock.found));
  return passes;
}

}  // namespace

double RankReplay::mean_error() const {
  double sum = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    sum += relative_error(simulated[i], recorded[i]);
  }
  return recorded.empty() ? 0 : sum / static_cast<double>(recorded.size());
}

double RankReplay::span_error() const { return relative_error(simulated_span, recorded_span); }

double ReplayReport::mean_error() const {
  double sum = 0;
  for (const RankReplay& rank : ranks) sum += rank.mean_error();
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

double ReplayReport::worst_error() const {
  double worst = 0;
  for (const RankReplay& rank : ranks) worst = std::max(worst, rank.mean_error());
  return worst;
}

Result<ReplayReport> replay_alone(const JobProgram& job, const hardware::GpuSpec& spec) {
  const auto times = has_recurrence(job, spec) ? pass_times(job) : std::nullopt;
  if (!times) return replay_by_events(job, spec);  // says what is never met
  return compare(job, *times);
}

Result<ReplayReport> repeat_alone(const JobProgram& job, const hardware::GpuSpec& spec) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<RankPasses> passes, repeated_passes(job, spec));
  ReplayReport report;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    report.device_ops += job.ranks[i].ops.size();
    report.events += 2 * kPasses * job.ranks[i].ops.size() + passes[i].calls;
    report.ranks.push_back(repeated(job.ranks[i], passes[i]));
  }
  return report;
}

}  // namespace bubblesim::workload
