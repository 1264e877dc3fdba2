#include "sim/workload/shared_hosts.hpp"

#include <algorithm>

#include "sim/workload/polling.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/iterations/host_clock.hpp"

namespace bubblesim::workload {
namespace {

/// Calls that are steps of a program: they may wait, end a poll, or launch operations.
std::vector<bool> steps_of(const traces::RankTrace& rank) {
  std::vector<bool> steps(rank.host_calls.size());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = may_wait(rank, rank.host_calls[i]);
  for (const Poll& poll : find_polls(rank, traces::host_ahead(rank))) steps[poll.last] = true;
  for (const traces::DeviceOp& op : rank.device_ops) {
    if (op.launch != traces::kNone) steps[op.launch] = true;
  }
  return steps;
}

/// The thread's last step up to the call; null: none is in the program.
const CallPlace* place_of(const std::vector<CallPlace>& places, std::uint32_t thread,
                          std::uint32_t call) {
  auto place = std::ranges::upper_bound(places, call, {}, &CallPlace::call);
  while (place != places.begin()) {
    --place;
    if (place->thread == thread) return &*place;
  }
  return nullptr;
}

}  // namespace

SharedHosts::SharedHosts(const traces::JobTrace& job, const std::vector<traces::RankPass>& passes)
    : job_(job) {
  for (std::uint32_t i = 0; i < job.ranks.size(); ++i) {
    const traces::RankTrace& rank = job.ranks[i];
    if (rank.process == 0) continue;
    const std::vector<bool> steps = steps_of(rank);
    for (std::uint32_t call = 0; call < steps.size(); ++call) {
      const traces::HostCall& recorded = rank.host_calls[call];
      if (!steps[call] || (!passes.empty() && !passes[i].holds_call(recorded.start))) continue;
      calls_[{rank.process, rank.threads[recorded.thread.index()].system_id}].push_back(
          {i, call, recorded.start, recorded.end(), 0});
    }
  }
  for (auto& [thread, calls] : calls_) std::ranges::stable_sort(calls, {}, &PeerCall::start);
}

std::optional<TraceTime> SharedHosts::begin(std::uint32_t rank) const {
  std::optional<TraceTime> first;
  for (const auto& [thread, calls] : calls_) {
    if (thread.first != job_.ranks[rank].process) continue;
    first = std::min(first.value_or(calls.front().start), calls.front().start);
  }
  return first;
}

const std::vector<PeerCall>& SharedHosts::calls_of(std::uint32_t rank,
                                                   std::uint32_t thread) const {
  static const std::vector<PeerCall> kNoCalls;
  const traces::RankTrace& trace = job_.ranks[rank];
  const auto found = calls_.find({trace.process, trace.threads[thread].system_id});
  return found == calls_.end() ? kNoCalls : found->second;
}

std::optional<PeerCall> SharedHosts::last_of_pass(std::uint32_t rank, std::uint32_t thread) const {
  const std::vector<PeerCall>& calls = calls_of(rank, thread);
  if (calls.empty() || calls.back().rank == rank) return std::nullopt;
  PeerCall last = calls.back();
  last.passes_back = 1;
  return last;
}

std::optional<PeerCall> SharedHosts::last_before(std::uint32_t rank, std::uint32_t thread,
                                                 TraceTime after, TraceTime until) const {
  const std::vector<PeerCall>& calls = calls_of(rank, thread);
  auto call = std::ranges::lower_bound(calls, until, {}, &PeerCall::start);
  while (call != calls.begin()) {
    --call;
    if (call->start <= after) return std::nullopt;
    if (call->rank != rank && call->end <= until) return *call;
  }
  return std::nullopt;
}

void resolve_peers(const traces::JobTrace& job, const std::vector<std::vector<CallPlace>>& places,
                   JobProgram& program) {
  for (program::Program& rank : program.ranks) {
    for (program::StepDetail& detail : rank.details) {
      if (detail.after_rank == program::kNoIndex) continue;
      const std::uint32_t thread =
          job.ranks[detail.after_rank].host_calls[detail.after_step].thread.value;
      const CallPlace* place = place_of(places[detail.after_rank], thread, detail.after_step);
      detail.after_thread = place == nullptr ? program::kNoIndex : thread;
      if (place == nullptr) continue;
      detail.after_step = place->step;
      program.shared_hosts = true;
    }
  }
}

}  // namespace bubblesim::workload
