#include "sim/run/gpu_node.hpp"

#include <utility>

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

observe::Activity ClientMonitor::activity_of(const program::Op& op) const {
  if (filler_ != nullptr) return observe::Activity::kFillerWork;
  return op.kind == program::WorkKind::kCollective ? observe::Activity::kTrainingCollective
                                               : observe::Activity::kTrainingWork;
}

void ClientMonitor::count_started(const program::Op& op, SimTime now) {
  node_.meter->started(activity_of(op), now);
  if (node_.usage) node_.usage->started(activity_of(op), now);
}

void ClientMonitor::count_ended(const program::Op& op, SimTime now) {
  node_.meter->ended(activity_of(op), now);
  if (node_.usage) node_.usage->ended(activity_of(op), now);
}

void ClientMonitor::on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) {
  if (filler_ != nullptr || index == 0) return;
  const Duration length = now - last_iteration_end_;
  iterations.push_back(length);
  if (node_.timeline != nullptr) {
    node_.timeline->add({node_.id, policy_client_, node_.timeline->intern("iteration"),
                         observe::SliceKind::kPhase, last_iteration_end_, now});
  }
  last_iteration_end_ = now;
  if (node_.driver) node_.driver->iteration_ended(run, length, now);
  if (node_.iterations != nullptr) node_.iterations->on_iteration_ended(node_.rank_index);
}

void ClientMonitor::on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) {
  count_started(run.program().ops[op], now);
  if (node_.timeline != nullptr) since_[op] = now;
  if (node_.driver) node_.driver->op_started(run, op, now);
}

// A training job that waits for its turn has work to do: that is no bubble.
void ClientMonitor::on_op_paused(workload::ProgramRun& run, std::uint32_t op, SimTime now) {
  if (node_.timeline != nullptr && since_[op] < now) {
    record(run, op, slice_kind(run.program().ops[op].kind), now);
  }
  if (filler_ == nullptr) return;
  count_ended(run.program().ops[op], now);
}

void ClientMonitor::on_op_resumed(workload::ProgramRun& run, std::uint32_t op, SimTime now) {
  record(run, op, observe::SliceKind::kPaused, now);
  if (filler_ == nullptr) return;
  count_started(run.program().ops[op], now);
}

void ClientMonitor::on_op_finished(const workload::OpRecord& finished) {
  const program::Op& op = finished.run->program().ops[finished.op];
  count_ended(op, finished.end);
  if (node_.driver) node_.driver->op_finished(finished);
  record(*finished.run, finished.op, slice_kind(op.kind), finished.end);
}

// What the operation did since it last began, stood still or went on.
void ClientMonitor::record(const workload::ProgramRun& run, std::uint32_t index,
                           observe::SliceKind kind, SimTime until) {
  if (node_.timeline == nullptr) return;
  const program::Op& op = run.program().ops[index];
  const SimTime since = std::exchange(since_[index], until);
  if (since == until && kind == observe::SliceKind::kPaused) return;
  auto found = timeline_names_.find(op.name.value);
  if (found == timeline_names_.end()) {
    const NameId name = node_.timeline->intern(run.program().names[op.name]);
    found = timeline_names_.emplace(op.name.value, name).first;
  }
  observe::Slice slice{node_.id, policy_client_, found->second, kind, since, until};
  if (filler_ != nullptr) slice.request = filler_->service->serving().value_or(slice.request);
  node_.timeline->add(slice);
}

void ClientMonitor::on_pass_finished(workload::ProgramRun& run, SimTime now) {
  if (filler_ == nullptr) return;
  if (node_.driver) node_.driver->iteration_ended(run, now - run.pass_start(), now);
  filler_->service->pass_finished(now);
}

double GpuNode::training_sm_seconds() const {
  return training ? gpu->usage(runs.front()->client()).sm_seconds : 0;
}

double GpuNode::filler_sm_seconds() const {
  double total = 0;
  for (const ClientId client : filler_clients) total += gpu->usage(client).sm_seconds;
  return total;
}

Bytes GpuNode::memory_now() const {
  if (!driver) return memory;
  Bytes total;
  for (const ClientId client : memory_of) total = total + driver->session().resident(client);
  return total;
}

SimTime GpuContact::next_contact(SimTime now) const {
  if (!iterations_ || !node_.training) return SimTime::max();
  const std::uint64_t ended = node_.monitors.front()->iterations.size();
  if (ended >= *iterations_) return SimTime::max();
  return now + static_cast<std::int64_t>(*iterations_ - ended - 1) * least_iteration_;
}

}  // namespace bubblesim::run
