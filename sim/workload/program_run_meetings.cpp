// When a ProgramRun can next arrive at collectives of several ranks: lower bounds.
#include <algorithm>

#include "sim/workload/program_run_parts.hpp"

namespace bubblesim::workload {
namespace {

// The GPU model rounds times of shared work to nanoseconds.
constexpr double kCaution = 0.999;

}  // namespace

// The least that work can take which takes so long alone: nothing runs faster than alone but what
// is confined to a part of the SMs, while the others are dark.
Duration ProgramRun::shortest(Duration alone) const {
  const double share = kCaution / std::max(1.0, gpu_.spec().part.dark_clock_gain);
  return Duration{static_cast<std::int64_t>(static_cast<double>(alone.count()) * share)};
}

void ProgramRun::next_meetings(SimTime now, std::vector<NextMeeting>& next) const {
  if (setup_.rendezvous == nullptr) return;
  if (!meetings_) meetings_ = meeting_table(program_);
  if (meetings_->with_meetings.empty()) return;
  if (!meetings_->known) {
    next.push_back({program::kNoIndex, now});
    return;
  }
  const bool own_durations =
      setup_.perturbation.slowdown >= 1 && setup_.perturbation.jitter_cv <= 0 && pass_factor_ >= 1;
  for (const std::uint32_t stream : meetings_->with_meetings) {
    std::optional<NextMeeting> meeting = next_meeting_of(stream, now);
    if (!meeting) continue;
    if (!own_durations) meeting->earliest = now;
    next.push_back(*meeting);
  }
}

ProgramRun::Ahead ProgramRun::ahead_of(const Stream& stream, SimTime now) const {
  if (stream.state != Stream::State::kRunning) {
    return {now, stream.work_ended, stream.meetings_ended};
  }
  const program::Op& op = program_.ops[stream.pending.front().op];
  const std::uint64_t meets = op.collective == program::kNoIndex ? 0 : 1;
  const Duration saved = stream.arrived ? Duration{} : op.duration - shortest(op.duration);
  const SimTime end =
      stream.earliest_end == SimTime::max() ? SimTime::max() : stream.earliest_end - saved;
  return {std::max(now, end), stream.work_ended + op.duration, stream.meetings_ended + meets};
}

// A collective is on the GPU, whose blocks wait for room.
bool ProgramRun::about_to_arrive(const Stream& stream) const {
  return stream.state == Stream::State::kRunning && !stream.arrived &&
         program_.ops[stream.pending.front().op].collective != program::kNoIndex;
}

// When the host calls its launch, at the earliest.
SimTime ProgramRun::next_launch_of(const Meeting& meeting, std::int64_t pass, SimTime now) const {
  const Thread& thread = *threads_[meeting.thread];
  if (thread.state == Thread::State::kDone || thread.state == Thread::State::kEnding) return now;
  Duration left = pass * meetings_->host_passes[meeting.thread] + meeting.host_before -
                  thread.host_done - thread.step().think.duration();
  if (thread.state == Thread::State::kThinking) {
    return engine_.due(thread.entity).value_or(now) + std::max(Duration{}, left);
  }
  left -= thread.step().cost.duration();  // its call may be about to return
  return now + std::max(Duration{}, left);
}

// None: what waits in a collective lets nothing behind it begin.
std::optional<NextMeeting> ProgramRun::next_meeting_of(std::uint32_t index, SimTime now) const {
  const MeetingTable::Stream& stream = meetings_->streams[index];
  const Stream& state = *streams_[index];
  if (about_to_arrive(state)) {
    return NextMeeting{program_.ops[state.pending.front().op].collective, now};
  }
  const Ahead own = ahead_of(state, now);
  if (own.from == SimTime::max()) return std::nullopt;
  const std::uint64_t count = stream.meetings.size();
  const auto pass = static_cast<std::int64_t>(own.meetings / count);
  const Meeting& meeting = stream.meetings[own.meetings % count];
  SimTime next = own.from + shortest(pass * stream.pass + meeting.before - own.done);
  if (own.meetings >= state.meetings_launched) {
    next = std::max(next, next_launch_of(meeting, pass, now));
  }
  for (std::uint32_t i = 0; i < meeting.edge_count; ++i) {
    const MeetingEdge& edge = meetings_->edges[meeting.first_edge + i];
    const Stream& other = *streams_[edge.stream];
    const Duration through = pass * meetings_->streams[edge.stream].pass + edge.through;
    const Ahead ahead = ahead_of(other, now);
    if (through <= other.work_ended) continue;
    if (ahead.from == SimTime::max()) return std::nullopt;
    next = std::max(next, ahead.from + shortest(std::max(Duration{}, through - ahead.done)));
  }
  return NextMeeting{meeting.collective, std::max(next, now)};
}

}  // namespace bubblesim::workload
