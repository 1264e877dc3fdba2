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

/// Notes when each pass of one rank ends, on the host, and on the device: when as many operations
/// that pace the job have ended as so many passes have.
class PassClock final : public RunObserver {
 public:
  explicit PassClock(const program::Program& program)
      : ops_(pacing_ops(program)),
        ops_a_pass_(static_cast<std::uint64_t>(std::ranges::count(ops_, true))) {}

  void on_iteration(ProgramRun& run, std::uint32_t iteration, SimTime now) override {
    if (iteration == run.program().iterations) ends.push_back(now);
  }
  void on_op_finished(const OpRecord& record) override {
    if (!ops_[record.op]) return;
    if (++ops_ended_ % ops_a_pass_ == 0) device_ends.push_back(record.end);
  }
  void on_host_call(const HostCallRecord&) override { ++calls; }

  std::vector<SimTime> ends;
  std::vector<SimTime> device_ends;
  std::uint64_t calls = 0;

 private:
  std::vector<bool> ops_;
  std::uint64_t ops_a_pass_ = 0;
  std::uint64_t ops_ended_ = 0;
};

Duration mean_pass(const std::vector<SimTime>& ends) {
  return (ends.back() - ends[kPassesToSettle - 1]) / static_cast<std::int64_t>(kPassesCounted);
}

/// A host that nothing makes wait gains on the device until a launch queue is full, long after the
/// passes that are counted: from this much on the device's pace is the job's.
constexpr double kGains = 1.01;

Duration mean_pass(const PassClock& clock) {
  const Duration host = mean_pass(clock.ends);
  if (clock.device_ends.size() < clock.ends.size()) return host;
  const Duration device = mean_pass(clock.device_ends);
  return to_seconds(device) > kGains * to_seconds(host) ? device : host;
}

RankReplay repeated(const program::Program& program, const PassClock& clock) {
  RankReplay rank;
  rank.rank = program.rank;
  for (const Duration iteration : program.recorded_iterations) rank.recorded_span += iteration;
  rank.simulated_span = mean_pass(clock);
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
  std::vector<PassClock> clocks(job.ranks.begin(), job.ranks.end());
  const std::uint64_t passes = kPassesToSettle + kPassesCounted;
  LoneJob lone(job, spec, {Repeat::kLoop, passes, {}}, pointers_to(clocks));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  ReplayReport report;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    report.device_ops += job.ranks[i].ops.size();
    report.events += 2 * passes * job.ranks[i].ops.size() + clocks[i].calls;
    report.ranks.push_back(repeated(job.ranks[i], clocks[i]));
  }
  return report;
}

}  // namespace bubblesim::workload
