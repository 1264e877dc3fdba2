#include "sim/workload/program_run.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/workload/program_run_parts.hpp"

namespace bubblesim::workload {
namespace {

gpu::ClientSetup client_of(gpu::ClientSetup client, const program::Program& program) {
  client.own_kernels = program.own_kernels;
  return client;
}

}  // namespace

ProgramRun::ProgramRun(engine::Engine& engine, gpu::Gpu& gpu, const program::Program& program,
                       const RunSetup& setup)
    : engine_(engine), gpu_(gpu), program_(program), setup_(setup),
      client_(gpu.add_client(client_of(setup.client, program), *this)),
      takes_turns_(gpu.mode() == program::SharingMode::kTimeSliced),
      random_(setup.perturbation.seed,
              "jitter of " + setup.client.name + setup.perturbation.place),
      results_(program.result_slots) {
  if (setup_.rendezvous != nullptr && gpu.freezes_contexts()) setup_.rendezvous->watch_stops();
  for (std::uint32_t i = 0; i < program.threads.size(); ++i) {
    threads_.push_back(std::make_unique<Thread>(*this, program.threads[i], i));
    threads_.back()->device_counts.resize(program.stream_count);
    threads_.back()->entity = engine.add_entity(*threads_.back(), engine::Phase::kHost);
  }
  for (std::uint32_t i = 0; i < program.stream_count; ++i) {
    streams_.push_back(std::make_unique<Stream>(*this, i));
    streams_.back()->entity = engine.add_entity(*streams_.back(), engine::Phase::kDispatch);
  }
}

ProgramRun::~ProgramRun() = default;

void ProgramRun::start_pass(SimTime at, double factor) {
  BUBBLESIM_CHECK(running_threads_ == 0, "a pass is still running");
  pass_factor_ = factor;
  pass_open_ = true;
  pass_start_ = at;
  for (const auto& thread : threads_) {
    if (!thread->program.steps.empty()) ++running_threads_;
  }
  for (const auto& thread : threads_) {
    if (thread->program.steps.empty()) continue;
    thread->last_end = thread->pass_begin = at;
    begin_step(*thread);
  }
}

void ProgramRun::start_thread(std::uint32_t thread_index, SimTime at) {
  BUBBLESIM_CHECK(running_threads_ == 0, "a pass is still running");
  Thread& thread = *threads_[thread_index];
  BUBBLESIM_CHECK(!thread.program.steps.empty(), "started a thread without steps");
  pass_factor_ = 1.0;
  pass_open_ = true;
  pass_start_ = at;
  running_threads_ = 1;
  thread.last_end = thread.pass_begin = at;
  begin_step(thread);
}

// Plans the thread's next call: its think time after the last step or after the hand-over.
inline void ProgramRun::begin_step(Thread& thread) {
  const program::Step& step = thread.step();
  SimTime base = thread.last_end;
  if (const program::StepDetail* after = program::hand_over(program_, step)) {
    const std::optional<SimTime> end = hand_over_end(*after, thread);
    if (!end) {
      thread.state = Thread::State::kAwaiting;
      return;
    }
    base = std::max(base, *end);
  }
  thread.state = Thread::State::kThinking;
  engine_.schedule(thread.entity,
                   past_outages(std::max(base + step.think.duration(), engine_.now())));
}

// The run of another rank that shares the host; null: it does not run here.
ProgramRun* ProgramRun::rank_at(std::uint32_t place) {
  if (place == setup_.place) return this;
  return setup_.ranks == nullptr ? nullptr : (*setup_.ranks)[place];
}

// When the step ended that the thread comes after; nothing: it is told once it has. A step that the
// other thread did longer ago ended before this thread's last one.
std::optional<SimTime> ProgramRun::hand_over_end(const program::StepDetail& after,
                                                 const Thread& thread) {
  const bool own = after.after_rank == program::kNoIndex;
  ProgramRun* const run = own ? this : rank_at(after.after_rank);
  if (run == nullptr) return SimTime::min();
  Thread& other = *run->threads_[after.after_thread];
  const std::uint64_t needed = program::steps_needed(run->program_, after, thread.pass);
  if (other.steps_done < needed) {
    other.followers.add(needed, {setup_.place, thread.index});
    return std::nullopt;
  }
  return other.steps_done == needed ? other.last_end : SimTime::min();
}

// When the call is made: a host whose job stands still makes it when the job goes on.
inline SimTime ProgramRun::past_outages(SimTime call) const {
  for (const Outage& outage : setup_.perturbation.outages) {
    if (call >= outage.from && call < outage.until) return outage.until;
  }
  return call;
}

// The call starts: does what the step says.
void ProgramRun::call(Thread& thread, SimTime now) {
  if (thread.state == Thread::State::kEnding) {
    thread.state = Thread::State::kDone;
    --running_threads_;
    end_pass_if_idle(now);
    return;
  }
  const program::Step& step = thread.step();
  thread.call_start = now;
  thread.call_end = now + step.cost.duration();
  switch (step.kind) {
    case program::StepKind::kPause:
      end_step(thread, thread.call_end);
      return;
    case program::StepKind::kIteration:
    case program::StepKind::kEnd:
      begin_iteration(step, thread, now);
      end_step(thread, thread.call_end);
      return;
    case program::StepKind::kLaunch:
    case program::StepKind::kLaunchAndWait: {
      thread.launch = ++launch_calls_;
      if (setup_.gate != nullptr &&
          !setup_.gate->may_launch(
              {this, thread.index, step.target, step.count, thread.launch}, now)) {
        thread.state = Thread::State::kHeld;
        return;
      }
      if (launch(thread, step, now)) wait(thread, step, now);
      return;
    }
    case program::StepKind::kWaitStream:
    case program::StepKind::kWaitDevice:
    case program::StepKind::kWaitOp:
      wait(thread, step, now);
      return;
  }
}

void ProgramRun::resume(std::uint32_t thread_index, SimTime now) {
  Thread& thread = *threads_[thread_index];
  BUBBLESIM_CHECK(thread.state == Thread::State::kHeld, "resumed a thread that is not held");
  const program::Step& step = thread.step();
  thread.call_end = now + step.cost.duration();
  if (launch(thread, step, now)) wait(thread, step, now);
}

inline void ProgramRun::push(const PendingOp& pending, SimTime now) {
  const program::Op& op = program_.ops[pending.op];
  Stream& stream = *streams_[op.stream];
  stream.pending.push(pending);
  if (pending.counts) ++stream.queued_calls;
  ++stream.launched;
  if (op.collective != program::kNoIndex) ++stream.meetings_launched;
  ++outstanding_;
  if (stream.state == Stream::State::kIdle) advance(stream, now);
}

// Puts the step's operations on their streams; false if the first one's queue has no room yet.
bool ProgramRun::launch(Thread& thread, const program::Step& step, SimTime now) {
  Stream& first = *streams_[program_.ops[step.target].stream];
  const bool counts = program::takes_place(step);
  if (counts && first.queued_calls >= program::kLaunchQueueDepth) {
    wait_for_queue(thread, first);
    return false;
  }
  const program::LaunchForm form = std::exchange(form_, {});
  const auto most =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(form.most_blocks, program::kNoIndex));
  PendingOp pending{step.target, most, thread.pass, thread.launch, {},
                    static_cast<float>(form.slowdown), counts};
  for (; pending.op < step.target + step.count; ++pending.op) {
    pending.ready = now + program_.ops[pending.op].launch_lag.duration();
    push(pending, now);
    pending.counts = false;
  }
  return true;
}

void ProgramRun::launch(const OutsideLaunch& outside, SimTime now) {
  for (std::uint32_t op = outside.first; op < outside.first + outside.count; ++op) {
    push({op, 0, outside.pass, outside.number, now + program_.ops[op].launch_lag.duration(),
          outside.slowdown, false},
         now);
  }
}

void ProgramRun::wait_for_queue(Thread& thread, Stream& stream) {
  thread.state = Thread::State::kWaiting;
  thread.relaunch = true;
  thread.form = std::exchange(form_, {});
  thread.wait_slot = program::kNoIndex;
  thread.wait_stream = stream.index;
  thread.wait_count = stream.ended + 1;
  ++waiting_threads_;
}

// Ends the step at once if there is nothing to wait for, else blocks the thread.
void ProgramRun::wait(Thread& thread, const program::Step& step, SimTime now) {
  if (step.kind == program::StepKind::kLaunch) return end_step(thread, thread.call_end);
  thread.wait_slot = program::kNoIndex;
  thread.wait_stream = program::kNoIndex;
  const program::Awaited awaited = program::awaited_by(program_, step);
  switch (awaited.kind) {
    case program::AwaitedKind::kNothing: return end_step(thread, thread.call_end);
    case program::AwaitedKind::kStream:
      thread.wait_stream = awaited.index;
      thread.wait_count = streams_[awaited.index]->launched;
      break;
    case program::AwaitedKind::kOp:
      thread.wait_slot = program_.ops[awaited.index].result_slot;
      thread.wait_count = program::ends_needed(awaited.passes_back, thread.pass);
      break;
    case program::AwaitedKind::kDevice:
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        thread.device_counts[i] = streams_[i]->launched;
      }
      break;
  }
  if (wait_is_over(thread)) {
    end_step(thread, std::max(thread.call_end, now));
    return;
  }
  thread.state = Thread::State::kWaiting;
  ++waiting_threads_;
}

bool ProgramRun::wait_is_over(const Thread& thread) const {
  if (thread.wait_slot != program::kNoIndex)
    return results_[thread.wait_slot].passes >= thread.wait_count;
  if (thread.wait_stream != program::kNoIndex) {
    return streams_[thread.wait_stream]->ended >= thread.wait_count;
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->ended < thread.device_counts[i]) return false;
  }
  return true;
}

// The step's call returns at `end`, which may lie ahead; threads that wait for a hand-over go on.
void ProgramRun::end_step(Thread& thread, SimTime end) {
  thread.last_end = end;
  thread.host_done += thread.step().think.duration() + thread.step().cost.duration();
  ++thread.steps_done;
  const std::size_t ended = thread.next++;
  if (setup_.observer != nullptr) {
    setup_.observer->on_host_call({this, thread.index, static_cast<std::uint32_t>(ended),
                                   thread.call_start, end});
  }
  while (const auto follower = thread.followers.take(thread.steps_done)) {
    ProgramRun& run = *rank_at(follower->first);
    run.begin_step(*run.threads_[follower->second]);
  }
  if (thread.next < thread.program.steps.size()) {
    begin_step(thread);
  } else {
    end_thread_pass(thread);
  }
}

void ProgramRun::end_thread_pass(Thread& thread) {
  thread.next = 0;
  ++thread.pass;
  if (setup_.repeat == Repeat::kLoop && thread.pass != setup_.passes) {
    thread.last_end = thread.pass_begin =
        program::next_pass(thread.pass_begin, thread.last_end);
    begin_step(thread);
    return;
  }
  thread.state = Thread::State::kEnding;
  engine_.schedule(thread.entity, std::max(thread.last_end, engine_.now()));
}

// kOnePass: the pass is over when every thread and the device are.
void ProgramRun::end_pass_if_idle(SimTime now) {
  if (setup_.repeat == Repeat::kLoop || !pass_open_) return;
  if (running_threads_ > 0 || outstanding_ > 0) return;
  pass_open_ = false;
  ++passes_finished_;
  if (setup_.observer != nullptr) setup_.observer->on_pass_finished(*this, now);
}

void ProgramRun::begin_iteration(const program::Step& step, const Thread& thread, SimTime now) {
  if (setup_.perturbation.jitter_cv > 0) {
    iteration_factor_ = random_.gamma(1.0, setup_.perturbation.jitter_cv);
  }
  if (step.kind == program::StepKind::kEnd && setup_.repeat == Repeat::kLoop) {
    passes_finished_ = thread.pass + 1;
  }
  if (setup_.observer != nullptr) setup_.observer->on_iteration(*this, step.target, now);
}

}  // namespace bubblesim::workload
