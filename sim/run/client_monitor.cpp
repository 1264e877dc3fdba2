#include "sim/run/client_monitor.hpp"

#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::run {
namespace {

observe::SliceKind slice_kind(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return observe::SliceKind::kKernel;
    case program::WorkKind::kCollective: return observe::SliceKind::kCollective;
    case program::WorkKind::kCopy: return observe::SliceKind::kCopy;
    case program::WorkKind::kMemset: return observe::SliceKind::kMemset;
  }
  return observe::SliceKind::kKernel;
}

}  // namespace

void IterationGoal::on_iteration(std::uint64_t done, engine::Engine& engine) {
  if (done != iterations_) return;
  BUBBLESIM_CHECK(engine.in_order(), "a rank ends earlier than it can");
  if (--ranks_left_ == 0) engine.stop();
}

std::optional<std::uint64_t> IterationGoal::left(std::uint64_t done) const {
  if (!iterations_ || done >= *iterations_) return std::nullopt;
  return *iterations_ - done;
}

observe::Activity ClientMonitor::activity_of(const program::Op& op) const {
  if (filler_ != nullptr) return observe::Activity::kFillerWork;
  switch (op.kind) {
    case program::WorkKind::kKernel: return observe::Activity::kTrainingKernel;
    case program::WorkKind::kCollective: return observe::Activity::kTrainingCollective;
    case program::WorkKind::kCopy:
    case program::WorkKind::kMemset: return observe::Activity::kTrainingTransfer;
  }
  return observe::Activity::kTrainingKernel;
}

void ClientMonitor::on_op_started(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->started(client_, watched.program(), op, now);
  meters_.started(activity_of(watched.program().ops[op]), now);
  if (meters_.timeline != nullptr) since_[op] = now;
  ClientWatch::on_op_started(watched, op, now);
}

void ClientMonitor::on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->ended(client_, watched.program(), op, now);
  if (meters_.timeline == nullptr || since_[op] >= now) return;
  record(watched, op, slice_kind(watched.program().ops[op].kind), now);
}

void ClientMonitor::on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  if (meters_.power) meters_.power->started(client_, watched.program(), op, now);
  if (meters_.timeline != nullptr) record(watched, op, observe::SliceKind::kPaused, now);
}

void ClientMonitor::on_op_finished(const workload::OpRecord& finished) {
  const program::Op& op = finished.run->program().ops[finished.op];
  if (meters_.power) {
    meters_.power->ended(client_, finished.run->program(), finished.op, finished.end);
  }
  meters_.ended(activity_of(op), finished.end);
  ClientWatch::on_op_finished(finished);
  if (meters_.timeline != nullptr) {
    record(*finished.run, finished.op, slice_kind(op.kind), finished.end);
  }
}

// What the operation did since it last began, stood still or went on. Precondition: a timeline.
void ClientMonitor::record(const workload::ProgramRun& watched, std::uint32_t index,
                           observe::SliceKind kind, SimTime until) {
  const program::Op& op = watched.program().ops[index];
  const SimTime since = std::exchange(since_[index], until);
  if (since == until && kind == observe::SliceKind::kPaused) return;
  auto found = timeline_names_.find(op.name.value);
  if (found == timeline_names_.end()) {
    const NameId name = meters_.timeline->intern(watched.program().names[op.name]);
    found = timeline_names_.emplace(op.name.value, name).first;
  }
  observe::Slice slice{meters_.gpu, client_, found->second, kind, since, until};
  if (filler_ != nullptr) {
    slice.request = filler_->served_by().serving(filler_->member).value_or(slice.request);
  }
  meters_.timeline->add(slice);
}

void TrainingMonitor::on_iteration(workload::ProgramRun& watched, std::uint32_t index,
                                   SimTime now) {
  if (index == 0) return;
  const Duration length = now - last_iteration_end_;
  iterations.push_back(length);
  if (meters_.timeline != nullptr) {
    meters_.timeline->add({meters_.gpu, client_, meters_.timeline->intern("iteration"),
                           observe::SliceKind::kPhase, last_iteration_end_, now});
  }
  last_iteration_end_ = now;
  tell_iteration(watched, length, now);
  goal_.on_iteration(iterations.size(), watched.engine());
}

SimTime TrainingMonitor::earliest_goal(SimTime now) const {
  const std::optional<std::uint64_t> left = goal_.left(iterations.size());
  if (!left) return SimTime::max();
  return now + static_cast<std::int64_t>(*left - 1) * least_iteration_;
}

// A filler that stands still does nothing; a training job that waits for its turn has work to do:
// that is no bubble.
void FillerMonitor::on_op_paused(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  ClientMonitor::on_op_paused(watched, op, now);
  meters_.ended(activity_of(watched.program().ops[op]), now);
}

void FillerMonitor::on_op_resumed(workload::ProgramRun& watched, std::uint32_t op, SimTime now) {
  ClientMonitor::on_op_resumed(watched, op, now);
  meters_.started(activity_of(watched.program().ops[op]), now);
}

void FillerMonitor::on_pass_finished(workload::ProgramRun& watched, SimTime now) {
  tell_iteration(watched, now - watched.pass_start(), now);
  filler_->served_by().pass_finished(now);
}

}  // namespace bubblesim::run
