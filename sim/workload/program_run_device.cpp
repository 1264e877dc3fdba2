// The device side of a ProgramRun: streams, edges, collectives, and waking who waits for them.
#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/workload/program_run_parts.hpp"

namespace bubblesim::workload {
// Starts the stream's next operation, or finds out what it waits for.
void ProgramRun::advance(Stream& stream, SimTime now) {
  if (stream.pending.empty()) {
    stream.state = Stream::State::kIdle;
    return;
  }
  const PendingOp& pending = stream.pending.front();
  const program::Op& op = program_.ops[pending.op];
  const auto start = program::start_of(
      program_, op, pending.ready, stream.last_end, [&](const program::OpEdge& edge) {
        const OpResult& result = results_[program_.ops[edge.before].result_slot];
        const std::uint64_t needed = program::ends_needed(edge.passes_back, pending.pass);
        if (needed == 0) return SimTime::min();
        return result.passes >= needed ? result.end : SimTime::max();
      });
  if (start.open != nullptr) {
    if (stream.state != Stream::State::kBlocked) ++blocked_streams_;
    stream.state = Stream::State::kBlocked;
    stream.blocked_on = program_.ops[start.open->before].result_slot;
    return;
  }
  if (stream.state == Stream::State::kBlocked) --blocked_streams_;
  stream.state = Stream::State::kScheduled;
  engine_.schedule(stream.entity, std::max(start.at, now));
  if (start.at <= now) gpu_.expect_submission();
  if (!takes_turns_) return;
  if (op.kind != program::WorkKind::kCopy && start.at <= now + gpu::kInChannel) announce(stream);
}

void ProgramRun::announce(Stream& stream) {
  if (stream.announced) return;
  stream.announced = true;
  gpu_.announce(client_);
}

void ProgramRun::retract(Stream& stream) {
  if (!stream.announced) return;
  stream.announced = false;
  gpu_.retract(client_);
}

void ProgramRun::submit(Stream& stream, SimTime now) {
  const PendingOp& pending = stream.pending.front();
  const program::Op& op = program_.ops[pending.op];
  stream.state = Stream::State::kRunning;
  stream.work_start = now;
  stream.earliest_end = now + op.duration;
  stream.arrived = stream.on_gpu = stream.stands = false;
  const program::KernelProfile* profile =
      op.profile == program::kNoIndex ? nullptr : &program_.profiles[op.profile];
  // A memset takes no SMs here, but it is work of its context.
  const bool memset = takes_turns_ && op.kind == program::WorkKind::kMemset &&
                      op.duration <= gpu::kInChannel;
  if (memset) announce(stream);
  gpu_.submit({client_, op.kind, duration_of(op, pending.slowdown), profile, stream.index,
               pending.most_blocks});
  if (!memset) retract(stream);
}

// At least the time of its remote traffic over the host link: a roofline of the two memories.
inline double ProgramRun::remote_stretch(const program::Op& op) const {
  if (remote_share_ <= 0) return 1;
  const double host = gpu_.spec().host_bandwidth.value;
  if (host <= 0 || op.profile == program::kNoIndex) return 1;
  const double traffic = program_.profiles[op.profile].dram_share *
                         gpu_.spec().dram_bandwidth.value * gpu_.spec().dram_reach *
                         remote_share_;
  return std::max(1.0, traffic / host);
}

inline Duration ProgramRun::duration_of(const program::Op& op, double slowdown) const {
  const Perturbation& what = setup_.perturbation;
  const bool slow = engine_.now() >= what.from && engine_.now() < what.until;
  return program::duration_of(op, pass_factor_ * iteration_factor_ *
                                      (slow ? what.slowdown : 1.0) * slowdown *
                                      remote_stretch(op));
}

void ProgramRun::on_work_started(std::uint64_t cookie, gpu::WorkId work, SimTime now) {
  Stream& stream = *streams_[cookie];
  const std::uint32_t index = stream.pending.front().op;
  const program::Op& op = program_.ops[index];
  stream.work = work;
  stream.work_start = now;
  stream.on_gpu = true;
  if (setup_.observer != nullptr) setup_.observer->on_op_started(*this, index, now);
  if (op.kind != program::WorkKind::kCollective) return;
  if (op.collective == program::kNoIndex) {
    on_all_arrived(cookie, now);
  } else {
    BUBBLESIM_DCHECK(setup_.rendezvous != nullptr, "a joined collective needs a rendezvous");
    stream.arrived = true;
    stream.earliest_end = SimTime::max();
    network::Rendezvous& rendezvous = *setup_.rendezvous;
    if (rendezvous.is_sender(op.collective, program_.rank)) {
      rendezvous.send(op.collective, *this, cookie, now);
    } else if (engine_.in_order()) {
      rendezvous.arrive(op.collective, *this, cookie, now);
    } else {
      arrivals_.push_back({now, engine_.reached_phase(), op.collective, this, cookie});
    }
  }
}

void ProgramRun::take_arrivals(std::vector<network::Arrival>& arrivals) {
  arrivals.insert(arrivals.end(), arrivals_.begin(), arrivals_.end());
  arrivals_.clear();
}

void ProgramRun::on_all_arrived(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  const program::Op& op = program_.ops[stream.pending.front().op];
  stream.earliest_end = now + op.duration;
  gpu_.finish_collective(stream.work, stream.earliest_end);
}

bool ProgramRun::stands_still(std::uint64_t cookie) const { return streams_[cookie]->stands; }

// What is over in this instant ends; `earliest_end` stays: it ends no sooner.
void ProgramRun::on_held(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  if (stream.held_for || stream.earliest_end <= now) return;
  if (stream.earliest_end == SimTime::max()) return;  // it will be told after this
  stream.held_for = stream.earliest_end - now;
  gpu_.finish_collective(stream.work, SimTime::max());
}

void ProgramRun::on_released(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  if (!stream.held_for) return;
  stream.earliest_end = now + *std::exchange(stream.held_for, std::nullopt);
  gpu_.finish_collective(stream.work, stream.earliest_end);
}

bool ProgramRun::waits_switched_out(const program::Op& op) const {
  return op.kind == program::WorkKind::kCollective &&
         program_.collectives == program::SwitchedOut::kWaits;
}

void ProgramRun::on_work_paused(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  stream.stands = true;
  const std::uint32_t index = stream.pending.front().op;
  if (setup_.observer != nullptr) setup_.observer->on_op_paused(*this, index, now);
  const program::Op& op = program_.ops[index];
  if (!waits_switched_out(op)) return;
  if (op.collective == program::kNoIndex) return on_held(cookie, now);
  setup_.rendezvous->stop(op.collective, *this, cookie, now);
}

void ProgramRun::on_work_resumed(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  stream.stands = false;
  const std::uint32_t index = stream.pending.front().op;
  if (setup_.observer != nullptr) setup_.observer->on_op_resumed(*this, index, now);
  const program::Op& op = program_.ops[index];
  if (!waits_switched_out(op)) return;
  if (op.collective == program::kNoIndex) return on_released(cookie, now);
  setup_.rendezvous->go_on(op.collective, *this, cookie, now);
}

bool ProgramRun::has_more_launched() const {
  return std::ranges::any_of(streams_, [](const auto& stream) {
    return stream->state == Stream::State::kRunning && stream->pending.size() > 1;
  });
}

void ProgramRun::on_work_finished(std::uint64_t cookie, SimTime now) {
  Stream& stream = *streams_[cookie];
  const std::uint32_t index = stream.pending.front().op;
  const std::uint64_t launch = stream.pending.front().launch;
  const std::uint32_t slot = program_.ops[index].result_slot;
  if (stream.pending.front().counts) --stream.queued_calls;
  stream.pending.pop();
  stream.last_end = now;
  stream.work_ended += program_.ops[index].duration;
  if (program_.ops[index].collective != program::kNoIndex) {
    ++stream.meetings_ended;
    if (setup_.rendezvous->watches_stops()) {
      setup_.rendezvous->end(program_.ops[index].collective, *this, cookie);
    }
  }
  ++stream.ended;
  --outstanding_;
  if (slot != program::kNoIndex) {
    results_[slot].end = now;
    ++results_[slot].passes;
  }
  if (setup_.observer != nullptr) {
    setup_.observer->on_op_finished({this, index, launch, stream.work_start, now});
  }
  stream.state = Stream::State::kIdle;
  retract(stream);
  advance(stream, now);
  if (blocked_streams_ > 0 && slot != program::kNoIndex) {
    for (const auto& other : streams_) {
      if (other->state == Stream::State::kBlocked && other->blocked_on == slot) {
        advance(*other, now);
      }
    }
  }
  if (waiting_threads_ > 0) wake_threads(now);
  end_pass_if_idle(now);
}

// Lets every thread return whose wait is over.
void ProgramRun::wake_threads(SimTime now) {
  for (const auto& thread : threads_) {
    if (thread->state != Thread::State::kWaiting || !wait_is_over(*thread)) continue;
    --waiting_threads_;
    const program::Step& step = thread->step();
    if (thread->relaunch) {
      thread->relaunch = false;
      form_ = std::exchange(thread->form, {});
      thread->call_end = now + step.cost.duration();
      if (launch(*thread, step, now)) wait(*thread, step, now);
      continue;
    }
    end_step(*thread, std::max(thread->call_end, now + program::return_lag(program_, step)));
  }
}

bool ProgramRun::stands_still() const {
  return std::ranges::none_of(streams_, [](const auto& stream) {
    return stream->state == Stream::State::kScheduled || stream->state == Stream::State::kRunning;
  });
}

Wait ProgramRun::waits_for() const {
  for (const auto& thread : threads_) {
    if (thread->state == Thread::State::kHeld) return {WaitsFor::kPolicy, thread->step().target};
  }
  Wait found;
  for (const auto& stream : streams_) {
    if (stream->state != Stream::State::kRunning) continue;
    const std::uint32_t op = stream->pending.front().op;
    const bool held = stream->held_for && !stream->stands;
    const bool waits = held || (stream->arrived && stream->earliest_end == SimTime::max());
    const WaitsFor what = !stream->on_gpu ? WaitsFor::kRoom
                          : waits         ? WaitsFor::kPeers
                                          : WaitsFor::kDevice;
    if (what < found.what) found = {what, op};
  }
  return found;
}

}  // namespace bubblesim::workload
