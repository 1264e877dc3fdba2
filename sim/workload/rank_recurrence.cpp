#include "sim/workload/rank_recurrence.hpp"

#include <algorithm>
#include <utility>

#include "sim/program/rules.hpp"

namespace bubblesim::workload {
namespace {

constexpr SimTime kUnknown = SimTime::max();

bool joined(const program::Op& op) {
  return op.kind == program::WorkKind::kCollective && op.collective != program::kNoIndex;
}

}  // namespace

MeetingBoard::MeetingBoard(const JobProgram& job) : meetings_(job.collectives.size()) {
  for (std::size_t i = 0; i < meetings_.size(); ++i) {
    meetings_[i].needed = job.collectives[i].participants;
    if (job.collectives[i].buffered) meetings_[i].sender = job.collectives[i].from;
    meetings_[i].arrivals.reserve(meetings_[i].needed);
  }
}

void MeetingBoard::arrive(std::uint32_t collective, const RankArrival& arrival, SimTime at) {
  CountedMeeting& meeting = meetings_[collective];
  meeting.arrivals.push_back(arrival);
  meeting.last = std::max(meeting.last, at);
  if (meeting.arrivals.size() == meeting.needed) complete_.push_back(collective);
}

void MeetingBoard::send(std::uint32_t collective, SimTime at) {
  CountedMeeting& meeting = meetings_[collective];
  meeting.last = std::max(meeting.last, at);
  if (meeting.arrivals.size() == --meeting.needed) complete_.push_back(collective);
}

std::optional<MeetingBoard::CountedMeeting> MeetingBoard::take_complete() {
  if (complete_.empty()) return std::nullopt;
  CountedMeeting& meeting = meetings_[complete_.back()];
  complete_.pop_back();
  CountedMeeting taken = std::move(meeting);
  meeting.last = SimTime::min();  // for the next pass
  meeting.arrivals.clear();
  return taken;
}

RankRecurrence::RankRecurrence(const program::Program& program, std::uint32_t rank,
                               std::uint32_t passes, MeetingBoard& board)
    : program_(program),
      rank_(rank),
      passes_(passes),
      ops_a_pass_(static_cast<std::uint32_t>(program.ops.size())),
      board_(board),
      threads_(program.threads.size()),
      streams_(program.stream_count) {
  times_.op_ends.assign(passes * program.ops.size(), kUnknown);
  const SimTime start = kSimStart + program.start_offset;
  times_.end = start;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].steps = &program.threads[i].steps;
    threads_[i].last_end = threads_[i].pass_begin = start;
  }
  for (Thread& thread : threads_) {
    if (!thread.steps->empty()) begin_step(thread, start);
  }
}

bool RankRecurrence::finished() const {
  return unended_ == 0 && std::ranges::all_of(threads_, [](const Thread& thread) {
           return thread.state == Thread::State::kDone;
         });
}

bool RankRecurrence::looks_up_late() const {
  if (passes_ == 1) return false;
  for (std::uint32_t pass = 0; pass < passes_; ++pass) {
    for (std::uint32_t op = 0; op < program_.ops.size(); ++op) {
      const program::Op& waiting = program_.ops[op];
      for (std::uint32_t i = 0; i < waiting.edge_count; ++i) {
        const program::OpEdge& edge = program_.edges[waiting.first_edge + i];
        if (edge.passes_back <= pass && is_held_later(waiting, place_of(op, pass), edge,
                                                      pass - edge.passes_back + 1)) {
          return true;
        }
      }
    }
  }
  return false;
}

// Of a collective only the last rank's start is known, which is no earlier than its own.
bool RankRecurrence::is_held_later(const program::Op& op, std::uint32_t place,
                                   const program::OpEdge& edge, std::uint32_t pass) const {
  const SimTime start = times_.op_ends[place] - op.duration;
  for (; pass < passes_; ++pass) {
    const SimTime end = times_.op_ends[place_of(edge.before, pass)];
    if (end > start) return false;
    const Duration lag = edge.lag.duration();
    if (joined(op) ? lag > Duration{} : end + lag > start) return true;
  }
  return false;
}

PassTimes RankRecurrence::take() {
  times_.end = std::max(times_.end, times_.last_op_end);
  return std::move(times_);
}

SimTime RankRecurrence::end_of_wait(const Thread& thread) const {
  SimTime end = SimTime::min();
  for (const std::uint32_t place : thread.waits_for) end = std::max(end, times_.op_ends[place]);
  return end;
}

bool RankRecurrence::has_ended(std::uint32_t place, SimTime now) {
  const SimTime end = times_.op_ends[place];
  if (end == now && takes_no_time(place)) ambiguous_ = true;
  return end <= now;
}

// By the time of the thread's call.
bool RankRecurrence::wait_is_over(const Thread& thread) {
  return std::all_of(thread.waits_for.begin(), thread.waits_for.end(),
                     [&](std::uint32_t place) { return has_ended(place, thread.at); });
}

// Ends of operations come before calls of their instant. If a thread waits for what is not known
// yet, it may still be the first.
RankRecurrence::Next RankRecurrence::look_ahead(bool certain_only) const {
  Next next;
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = threads_[i];
    if (thread.state != Thread::State::kCalls && thread.state != Thread::State::kWaits) continue;
    const bool returns = thread.state == Thread::State::kWaits;
    const SimTime at = returns ? std::max(end_of_wait(thread), thread.at) : thread.at;
    if (at == kUnknown && certain_only) return {};
    const bool first = at < next.at || (at == next.at && at != kUnknown && !next.returns &&
                                        (returns || thread.ticket < threads_[next.thread].ticket));
    if (first) next = {at, i, returns};
  }
  return next;
}

void RankRecurrence::run() {
  while (!ambiguous_) {
    const Next next = look_ahead(true);
    if (next.at == kUnknown) return;
    go(next);
  }
}

SimTime RankRecurrence::next_call() const {
  return ambiguous_ ? kUnknown : look_ahead(false).at;
}

void RankRecurrence::make_next_call() { go(look_ahead(false)); }

// Which of several threads goes on first in one instant is a matter of which operation ended first
// in it, unless they waited for the same; and one that takes no time may end after a call of its
// instant.
bool RankRecurrence::returns_beyond_doubt(const Thread& thread, SimTime at) const {
  const std::vector<std::uint32_t> ended = ended_at(thread, at);
  const bool certain = !ended.empty() && std::ranges::none_of(ended, [&](std::uint32_t place) {
    return takes_no_time(place);
  });
  return std::ranges::none_of(threads_, [&](const Thread& other) {
    if (&other == &thread) return false;
    if (other.state == Thread::State::kCalls) return !certain && other.at == at;
    return other.state == Thread::State::kWaits &&
           std::max(end_of_wait(other), other.at) == at && ended_at(other, at) != ended;
  });
}

std::vector<std::uint32_t> RankRecurrence::ended_at(const Thread& thread, SimTime at) const {
  std::vector<std::uint32_t> ended;
  for (const std::uint32_t place : thread.waits_for) {
    if (times_.op_ends[place] == at) ended.push_back(place);
  }
  return ended;
}

void RankRecurrence::go(Next next) {
  Thread& thread = threads_[next.thread];
  if (!next.returns) return call(thread, next.at);
  if (threads_.size() > 1 && !returns_beyond_doubt(thread, next.at)) ambiguous_ = true;
  thread.state = Thread::State::kCalls;
  const program::Step& step = thread.step();
  if (std::exchange(thread.relaunches, false)) {
    thread.at = next.at;
    thread.call_end = next.at + step.cost.duration();
    return launch(thread, next.at);
  }
  // What has ended before the call needs no time to be noticed.
  const Duration lag =
      wait_is_over(thread) ? Duration{} : program::return_lag(program_, step);
  end_step(thread, std::max(thread.call_end, next.at + lag), next.at);
}

void RankRecurrence::call(Thread& thread, SimTime now) {
  const program::Step& step = thread.step();
  ++times_.calls;
  thread.call_end = now + step.cost.duration();
  switch (step.kind) {
    case program::StepKind::kPause: return end_step(thread, thread.call_end, now);
    case program::StepKind::kIteration:
    case program::StepKind::kEnd:
      times_.marks.push_back(now);
      if (step.target == program_.iterations) times_.ends.push_back(now);
      return end_step(thread, thread.call_end, now);
    case program::StepKind::kLaunch:
    case program::StepKind::kLaunchAndWait: return launch(thread, now);
    case program::StepKind::kWaitStream:
    case program::StepKind::kWaitDevice:
    case program::StepKind::kWaitOp: return wait(thread, now);
  }
}

// A launch waits while its stream has as many before it as fit into the queue.
void RankRecurrence::launch(Thread& thread, SimTime now) {
  const program::Step& step = thread.step();
  if (program::takes_place(step) && step.count > 0) {
    Stream& stream = streams_[program_.ops[step.target].stream];
    if (stream.calls.empty()) stream.calls.resize(program::kLaunchQueueDepth);
    std::uint32_t& place = stream.calls[stream.call_count % program::kLaunchQueueDepth];
    if (stream.call_count >= program::kLaunchQueueDepth && !has_ended(place, now)) {
      thread.waits_for.assign(1, place);
      thread.relaunches = true;
      thread.state = Thread::State::kWaits;
      return;
    }
    place = place_of(step.target, thread.pass);
    ++stream.call_count;
  }
  for (std::uint32_t op = step.target; op < step.target + step.count; ++op) {
    put_on_stream({op, thread.pass, now + program_.ops[op].launch_lag.duration()});
  }
  if (step.kind == program::StepKind::kLaunch) return end_step(thread, thread.call_end, now);
  wait(thread, now);
}

void RankRecurrence::wait(Thread& thread, SimTime now) {
  const program::Step& step = thread.step();
  thread.waits_for.clear();
  const auto wait_for_stream = [&](const Stream& stream) {
    if (stream.last_op != program::kNoIndex) thread.waits_for.push_back(stream.last_op);
  };
  const program::Awaited awaited = program::awaited_by(program_, step);
  switch (awaited.kind) {
    case program::AwaitedKind::kNothing: break;
    case program::AwaitedKind::kStream: wait_for_stream(streams_[awaited.index]); break;
    case program::AwaitedKind::kOp:
      if (awaited.passes_back <= thread.pass) {
        thread.waits_for.push_back(place_of(awaited.index, thread.pass - awaited.passes_back));
      }
      break;
    case program::AwaitedKind::kDevice:
      for (const Stream& stream : streams_) wait_for_stream(stream);
      break;
  }
  if (wait_is_over(thread)) return end_step(thread, std::max(thread.call_end, now), now);
  thread.state = Thread::State::kWaits;
}

// The step's call returns at `end`, which may lie ahead; threads that wait for a hand-over go on.
void RankRecurrence::end_step(Thread& thread, SimTime end, SimTime now) {
  thread.last_end = end;
  ++thread.next;
  ++thread.steps_done;
  while (const auto follower = thread.followers.take(thread.steps_done)) {
    begin_step(threads_[*follower], now);
  }
  if (thread.next < thread.steps->size()) return begin_step(thread, now);
  end_pass(thread, now);
}

void RankRecurrence::end_pass(Thread& thread, SimTime now) {
  if (++thread.pass < passes_) {
    thread.next = 0;
    thread.last_end = thread.pass_begin = program::next_pass(thread.pass_begin, thread.last_end);
    return begin_step(thread, now);
  }
  thread.state = Thread::State::kDone;
  times_.end = std::max({times_.end, thread.last_end, now});
}

void RankRecurrence::begin_step(Thread& thread, SimTime now) {
  const program::Step& step = thread.step();
  SimTime base = thread.last_end;
  if (const program::StepDetail* after = program::hand_over(program_, step)) {
    Thread& other = threads_[after->after_thread];
    const std::uint64_t needed = program::steps_needed(program_, *after, thread.pass);
    if (other.steps_done < needed) {
      thread.state = Thread::State::kAwaits;
      other.followers.add(needed, static_cast<std::uint32_t>(&thread - threads_.data()));
      return;
    }
    if (other.steps_done == needed) base = std::max(base, other.last_end);
  }
  thread.state = Thread::State::kCalls;
  thread.at = std::max(base + step.think.duration(), now);
  thread.ticket = tickets_++;
}

void RankRecurrence::put_on_stream(const Pending& pending) {
  const program::Op& op = program_.ops[pending.op];
  Stream& stream = streams_[op.stream];
  stream.last_op = place_of(pending.op, pending.pass);
  ++unended_;
  if (stream.head < stream.pending.size()) {
    stream.pending.push_back(pending);
    return;
  }
  if (!begin(stream, pending)) {
    stream.pending.push_back(pending);
  } else if (op.result_slot != program::kNoIndex) {
    advance_all();
  }
}

// Whether others may have waited for something that has ended.
bool RankRecurrence::advance(Stream& stream) {
  bool awaited = false;
  while (!stream.meets && stream.head < stream.pending.size()) {
    const std::uint32_t op = stream.pending[stream.head].op;
    if (!begin(stream, stream.pending[stream.head])) return awaited;
    drop_first(stream);
    awaited = awaited || program_.ops[op].result_slot != program::kNoIndex;
  }
  return awaited;
}

inline SimTime RankRecurrence::start_of(const Stream& stream, const Pending& pending) const {
  const auto end_of = [&](const program::OpEdge& edge) {
    return edge.passes_back > pending.pass
               ? SimTime::min()
               : times_.op_ends[place_of(edge.before, pending.pass - edge.passes_back)];
  };
  return program::start_of(program_, program_.ops[pending.op], pending.ready, stream.last_end,
                           end_of)
      .at;
}

// The next operation of the stream; false if its end is not known yet.
bool RankRecurrence::begin(Stream& stream, const Pending& pending) {
  const program::Op& op = program_.ops[pending.op];
  const SimTime start = start_of(stream, pending);
  if (start == kUnknown) return false;
  if (joined(op) && board_.is_sender(op.collective, program_.rank)) {
    board_.send(op.collective, start);
  } else if (joined(op)) {
    stream.meets = true;
    board_.arrive(op.collective, {rank_, pending.op}, start);
    return false;
  }
  end_op(stream, pending, start + op.duration);
  return true;
}

void RankRecurrence::advance_all() {
  for (bool advanced = true; advanced;) {
    advanced = false;
    for (Stream& stream : streams_) {
      if (stream.head < stream.pending.size()) advanced = advance(stream) || advanced;
    }
  }
}

void RankRecurrence::end_op(Stream& stream, const Pending& pending, SimTime end) {
  times_.op_ends[place_of(pending.op, pending.pass)] = end;
  times_.last_op_end = std::max(times_.last_op_end, end);
  stream.last_end = end;
  --unended_;
}

void RankRecurrence::drop_first(Stream& stream) {
  if (++stream.head < stream.pending.size()) return;
  stream.pending.clear();
  stream.head = 0;
}

void RankRecurrence::met(std::uint32_t index, SimTime all_arrived) {
  const program::Op& op = program_.ops[index];
  Stream& stream = streams_[op.stream];
  stream.meets = false;
  end_op(stream, stream.pending[stream.head], all_arrived + op.duration);
  drop_first(stream);
  if (advance(stream) || op.result_slot != program::kNoIndex) advance_all();
}

}  // namespace bubblesim::workload
