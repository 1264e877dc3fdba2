#include "sim/run/lone_filler.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::run {
namespace {

// Whether the thread's first operation of each stream is ready only when its gap after an operation
// of an earlier pass is over: calls come no sooner than think times and costs allow.
bool starts_afresh(const program::Program& program, const program::ThreadProgram& thread) {
  std::vector<bool> used(program.stream_count);
  Duration call{};
  for (const program::Step& step : thread.steps) {
    call += step.think.duration();
    const bool launches = step.kind == program::StepKind::kLaunch ||
                          step.kind == program::StepKind::kLaunchAndWait;
    for (std::uint32_t i = 0; launches && i < step.count; ++i) {
      const program::Op& op = program.ops[step.target + i];
      if (used[op.stream]) continue;
      used[op.stream] = true;
      if (call + op.launch_lag.duration() < op.gap.duration()) return false;
    }
    call += step.cost.duration();
  }
  return true;
}

}  // namespace

bool passes_are_alike(const program::Program& program) {
  return std::ranges::all_of(program.edges,
                             [](const auto& edge) { return edge.passes_back == 0; }) &&
         std::ranges::all_of(program.details,
                             [](const program::StepDetail& detail) {
                               return detail.passes_back == 0 && detail.after_passes_back == 0;
                             }) &&
         std::ranges::all_of(program.threads, [&program](const auto& thread) {
           return starts_afresh(program, thread);
         });
}

LoneFillerMonitor::LoneFillerMonitor(GpuMeters& meters, FillerInstance& filler,
                                     const schedule::SharedGpu& gpu, const SimTime& next_read)
    : FillerMonitor(meters, filler), gpu_(gpu), next_read_(next_read),
      entity_(gpu.engine().add_entity(*this, engine::Phase::kHost)) {}

void LoneFillerMonitor::on_op_started(workload::ProgramRun& watched, std::uint32_t op,
                                      SimTime now) {
  if (running_++ == 0) busy_since_ = now;
  FillerMonitor::on_op_started(watched, op, now);
}

void LoneFillerMonitor::on_op_finished(const workload::OpRecord& finished) {
  last_op_end_ = finished.end;
  if (--running_ == 0) seen_.busy += finished.end - busy_since_;
  FillerMonitor::on_op_finished(finished);
}

bool LoneFillerMonitor::take_pass(SimTime now, double factor) {
  begin_ = now;
  factor_ = factor;
  const auto known = known_.find(factor);
  if (known == known_.end()) {
    seen_ = {};
    gpu_.device().log_sm_ns(&seen_.sm_ns);
    return false;
  }
  const SimTime read = now < meters_.warmup ? std::min(meters_.warmup, next_read_) : next_read_;
  if (known->second.length > read - now) return false;
  taken_ = &known->second;
  gpu_.engine().schedule(entity_, now + taken_->length);
  return true;
}

// Meters only sum: one operation stands for those of the pass.
void LoneFillerMonitor::on_event(SimTime now) {
  const Pass& pass = *std::exchange(taken_, nullptr);
  meters_.started(observe::Activity::kFillerWork, begin_);
  meters_.ended(observe::Activity::kFillerWork, begin_ + pass.busy);
  gpu_.device().add_sm_ns(run->client(), pass.sm_ns);
  filler_->served_by().pass_finished(now);
}

// A pass that the device ends, not the host, ends in another phase than this entity's.
void LoneFillerMonitor::on_pass_finished(workload::ProgramRun& watched, SimTime now) {
  gpu_.device().log_sm_ns(nullptr);
  if (last_op_end_ < now) {
    seen_.length = now - begin_;
    known_.try_emplace(factor_, std::move(seen_));
  }
  FillerMonitor::on_pass_finished(watched, now);
}

}  // namespace bubblesim::run
