#include "traces/iterations/before_window.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/iterations/host_clock.hpp"
#include "traces/iterations/marked_iterations.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

constexpr Duration kCallItself = std::chrono::microseconds(2);

constexpr CounterSpec kQueueKept{
    "iteration_queue_kept", Severity::kNotice,
    "device operations that were queued before the recording, taken for those that are queued as "
    "it ends: about as many launches at its end have no operation"};

/// When the device does the pass's work, and when work of before, by the host's clock.
struct DeviceTimes {
  Intervals own;
  Intervals before;
  Intervals queued;  ///< of `before`: what was queued as the recording began
};

bool came_before(const RankTrace& rank, const RankPass& pass, std::size_t op) {
  const std::uint32_t iteration = pass.iteration_of[op];
  if (iteration != kNone) return iteration < pass.first;
  const std::uint32_t launch = rank.device_ops[op].launch;
  return launch == kNone || rank.host_calls[launch].start < pass.host.begin;
}

DeviceTimes device_times(const RankTrace& rank, const RankPass& pass) {
  std::vector<Interval> own;
  std::vector<Interval> before;
  std::vector<Interval> queued;
  for (std::size_t i = 0; i < rank.device_ops.size(); ++i) {
    const DeviceOp& op = rank.device_ops[i];
    const TraceTime start = op.start + pass.later(i) + pass.host_ahead;
    const Interval span{start, start + std::max(Duration{}, op.duration)};
    if (pass.holds_op(i)) {
      own.push_back(span);
    } else if (came_before(rank, pass, i)) {
      before.push_back(span);
      if (pass.iteration_of[i] == kNone && op.launch == kNone) queued.push_back(span);
    }
  }
  return {unite(std::move(own)), unite(std::move(before)), unite(std::move(queued))};
}

std::vector<const HostCall*> launches_of(const RankTrace& rank, const RankPass& pass) {
  std::vector<const HostCall*> launches;  // sorted by start
  for (const HostCall& call : rank.host_calls) {
    if (is_launch(call.kind) && pass.holds_call(call.start)) launches.push_back(&call);
  }
  return launches;
}

bool may_wait(HostCallKind kind) {
  return is_synchronisation(kind) || kind == HostCallKind::kFree || kind == HostCallKind::kCopy;
}

// The call's time in which it may have waited at all: until another thread goes on.
Interval waiting_time(const RankPass& pass, const HostCall& call,
                      const std::vector<const HostCall*>& launches) {
  Interval span{call.start + kCallItself, std::min(call.end(), pass.host.end)};
  const auto next = std::ranges::upper_bound(launches, call.start, {}, &HostCall::start);
  if (next != launches.end()) span.end = std::min(span.end, (*next)->start);
  return span;
}

// Each call's first operation, into device_ops; kNone: the call launched none.
std::vector<std::uint32_t> first_ops(const RankTrace& rank) {
  std::vector<std::uint32_t> first(rank.host_calls.size(), kNone);
  for (auto op = static_cast<std::uint32_t>(rank.device_ops.size()); op-- > 0;) {
    const std::uint32_t launch = rank.device_ops[op].launch;
    if (launch != kNone) first[launch] = op;
  }
  return first;
}

// Launches that the queue held while it was full of work from before the recording. One that an
// earlier iteration's work held is held again as the pass repeats: it waits for the pass before.
void add_queue_waits(const RankTrace& rank, const RankPass& pass, const DeviceTimes& device,
                     const std::vector<const HostCall*>& launches, std::vector<Interval>& waits) {
  if (device.queued.empty() || device.queued.back().end <= pass.host.begin) return;
  const TraceTime over = std::min(device.queued.back().end, pass.host.end);
  const Intervals reasons = subtract(device.queued, device.own);
  const LaunchQueues queues(rank);
  const std::vector<std::uint32_t> first = first_ops(rank);
  for (std::uint32_t i = 0; i < first.size(); ++i) {  // calls are sorted by start
    const HostCall& call = rank.host_calls[i];
    if (call.start < pass.host.begin || first[i] == kNone || may_wait(call.kind)) continue;
    if (call.start >= over) break;
    Interval span = waiting_time(pass, call, launches);
    span.end = std::min(span.end, span.begin + queues.wait_of(i, first[i]).held);
    if (span.begin >= span.end) continue;
    for (const Interval& wait : clip(reasons, span)) {
      if (wait.begin < wait.end) waits.push_back(wait);
    }
  }
}

Intervals find_waits(const RankTrace& rank, const RankPass& pass, const DeviceTimes& device) {
  std::vector<Interval> waits;
  const std::vector<const HostCall*> launches = launches_of(rank, pass);
  add_queue_waits(rank, pass, device, launches, waits);
  // Nothing waits for earlier work once that has ended and the pass's has begun.
  TraceTime last_end = device.own.front().begin;
  if (!device.before.empty()) last_end = std::max(last_end, device.before.back().end);
  for (const HostCall& call : rank.host_calls) {  // sorted by start
    if (call.start < pass.host.begin || !may_wait(call.kind)) continue;
    if (call.start >= std::min(last_end, pass.host.end)) break;
    if (call.duration <= kCallItself) continue;
    const Interval span = waiting_time(pass, call, launches);
    if (span.begin >= span.end) continue;
    Intervals reasons = clip(device.before, span);
    if (is_synchronisation(call.kind) && span.begin < device.own.front().begin) {
      reasons.push_back({span.begin, std::min(span.end, device.own.front().begin)});
      reasons = unite(std::move(reasons));
    }
    for (const Interval& wait : subtract(reasons, device.own)) waits.push_back(wait);
  }
  return unite(std::move(waits));
}

Duration device_time(const DeviceTimes& device, TraceTime begin) {
  const TraceTime end = device.own.back().end;
  TraceTime from = device.own.front().begin;
  if (!device.before.empty() && device.before.back().end < end) {
    from = std::max(device.before.back().end, begin);
  }
  return end - from;
}

// Iterations that begin later are whole: those before them are recorded.
void count_cut_queue(const DeviceTimes& device, RankPass& pass) {
  const Duration cut = total_length(clip(device.queued, pass.host));
  pass.queue_cut = pass.first == 0 && 100 * cut > std::max(pass.host_time, pass.device_time);
  pass.counters.reset(kQueueCut, pass.queue_cut ? 1 : 0);
}

// Launches at the end of which the recording has no operation.
std::size_t launches_left(const RankTrace& rank) {
  std::size_t last = 0;
  for (const DeviceOp& op : rank.device_ops) {
    if (op.launch != kNone) last = std::max<std::size_t>(last, op.launch + 1);
  }
  const auto behind = rank.host_calls.begin() + static_cast<std::ptrdiff_t>(last);
  return static_cast<std::size_t>(std::count_if(
      behind, rank.host_calls.end(), [](const HostCall& call) { return is_launch(call.kind); }));
}

// What was queued before the recording, on streams of which launches are recorded.
std::vector<std::uint32_t> queued_ops(const RankTrace& rank, const RankPass& pass) {
  const std::vector<bool> launches = streams_with_launch(rank);
  std::vector<std::uint32_t> queued;
  for (std::uint32_t i = 0; i < rank.device_ops.size(); ++i) {
    const DeviceOp& op = rank.device_ops[i];
    const bool outside = pass.iteration_of[i] == kNone && op.launch == kNone;
    if (outside && launches[op.stream.index()]) queued.push_back(i);
  }
  return queued;
}

// A job that repeats, cut out of its run, has as much queued at the end of the recording as at its
// beginning: what was queued before runs again when the recording is over, as the device's next
// pass begins. Half to twice as many count as as much.
void keep_queue(const RankTrace& rank, RankPass& pass) {
  if (pass.count != pass.recorded.size()) return;
  const std::vector<std::uint32_t> queued = queued_ops(rank, pass);
  const std::size_t left = launches_left(rank);
  if (queued.empty() || 2 * left < queued.size() || left > 2 * queued.size()) return;
  TraceTime end = TraceTime::min();
  for (const DeviceOp& op : rank.device_ops) end = std::max(end, op.end());
  pass.kept.assign(rank.device_ops.size(), Duration{});
  for (const std::uint32_t op : queued) {
    pass.kept[op] = end - rank.device_ops.front().start;
    pass.iteration_of[op] = static_cast<std::uint32_t>(pass.recorded.size() - 1);
  }
  pass.recorded.back().operations += queued.size();
  pass.counters.add(kQueueKept, queued.size());
  pass.counters.reset(kQueuedBefore, pass.counters.count(kQueuedBefore.name) - queued.size());
}

}  // namespace

Intervals host_waits(const RankTrace& rank, const RankPass& pass) {
  const std::vector<const HostCall*> launches = launches_of(rank, pass);
  std::vector<Interval> waits;
  for (const HostCall& call : rank.host_calls) {
    if (!may_wait(call.kind) || !pass.holds_call(call.start)) continue;
    const Interval span = waiting_time(pass, call, launches);
    if (span.begin < span.end) waits.push_back(span);
  }
  return unite(std::move(waits));
}

void measure_pass(const RankTrace& rank, RankPass& pass) {
  if (pass.count == 0) return;
  keep_queue(rank, pass);
  pass.host = {pass.recorded[pass.first].host.begin,
               pass.recorded[pass.first + pass.count - 1].host.end};
  const DeviceTimes device = device_times(rank, pass);
  if (device.own.empty()) {
    pass.host_time = pass.host.length();
    return;
  }
  pass.waits = find_waits(rank, pass, device);
  pass.host_time = pass.host.length() - total_length(pass.waits);
  pass.device_time = pass.kept.empty()
                         ? std::max(Duration{}, device_time(device, pass.host.begin))
                         : *std::ranges::max_element(pass.kept);
  count_cut_queue(device, pass);
}

namespace {

constexpr std::int64_t kTelling = 100;  ///< 1 part in so many

/// A collective of one rank, as its pass has it.
struct Part {
  std::size_t rank = 0;
  TraceTime start{};
  TraceTime end{};
};
using Meeting = std::vector<Part>;

// A send and its receive have one key.
MeetingKey key_of(const RankTrace& rank, const DeviceOp& op) {
  if (op.collective == kNone) return {};
  MeetingKey key = group_key(rank, rank.collectives[op.collective]);
  if (!is_point_to_point(key.kind)) return key;
  return {std::move(key.group), {}, CollectiveKind::kSendRecv};
}

std::map<MeetingKey, std::vector<Part>> parts_by_key(const std::vector<const RankTrace*>& traces,
                                                     const std::vector<RankPass>& ranks) {
  std::map<MeetingKey, std::vector<Part>> parts;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < traces[r]->device_ops.size(); ++i) {
      const DeviceOp& op = traces[r]->device_ops[i];
      if (op.kind != DeviceOpKind::kCollective || !ranks[r].holds_op(i)) continue;
      parts[key_of(*traces[r], op)].push_back({r, ranks[r].ran_without_waits(i, op.start),
                                               ranks[r].ran_without_waits(i, op.end())});
    }
  }
  return parts;
}

bool belongs_to(const Meeting& meeting, const Part& part) {
  return !meeting.empty() && part.end - meeting.front().end <= kSameEnd &&
         std::ranges::find(meeting, part.rank, &Part::rank) == meeting.end();
}

TraceTime last_start(const Meeting& meeting) {
  return std::ranges::max(meeting, {}, &Part::start).start;
}

// In order of the last rank's start.
std::vector<Meeting> find_meetings(const std::vector<const RankTrace*>& traces,
                                   const std::vector<RankPass>& ranks) {
  std::vector<Meeting> meetings;
  for (auto& [key, parts] : parts_by_key(traces, ranks)) {
    std::ranges::stable_sort(parts, {}, &Part::end);
    meetings.emplace_back();
    for (const Part& part : parts) {
      if (!belongs_to(meetings.back(), part)) meetings.emplace_back();
      meetings.back().push_back(part);
    }
  }
  std::erase_if(meetings, [](const Meeting& meeting) { return meeting.size() < 2; });
  std::ranges::stable_sort(meetings, {}, last_start);
  return meetings;
}

Duration length_of(const RankPass& pass) { return std::max(pass.host_time, pass.device_time); }

/// What is left out of the passes, as their meetings are walked.
class StartSkew {
 public:
  StartSkew(const std::vector<const RankTrace*>& traces, std::vector<RankPass>& ranks,
            const std::vector<std::size_t>& meeting_ranks)
      : traces_(traces), ranks_(ranks), late_(ranks.size()), unknown_(ranks.size()),
        met_(ranks.size()) {
    Duration shortest = Duration::max();
    for (const std::size_t r : meeting_ranks) shortest = std::min(shortest, length_of(ranks[r]));
    for (const std::size_t r : meeting_ranks) late_[r] = length_of(ranks[r]) - shortest;
  }

  void pass(const Meeting& meeting) {
    const TraceTime met = last_start(meeting);
    Duration late{};
    for (const Part& part : meeting) late = std::max(late, part.start + late_[part.rank] - met);
    for (const Part& part : meeting) {
      met_[part.rank] = true;
      const Duration waited = std::exchange(late_[part.rank], late) - late;
      if (waited > Duration{}) leave_out(part, met, waited);
    }
  }

  // If a rank's collectives met none of another rank, all of its extra time may be waiting.
  void count() {
    Duration longest{};
    Duration least{};
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!met_[r]) unknown_[r] = late_[r];
      longest = std::max(longest, length_of(ranks_[r]));
      least = std::max(least, length_of(ranks_[r]) - unknown_[r]);
    }
    if (kTelling * (longest - least) <= longest) return;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (length_of(ranks_[r]) <= least) continue;
      ranks_[r].start_skew_unknown = true;
      ranks_[r].counters.reset(kStartSkewUnknown, 1);
    }
  }

 private:
  // The first of the host's waits from when the others might have come.
  void leave_out(const Part& part, TraceTime met, Duration waited) {
    RankPass& pass = ranks_[part.rank];
    const Interval within{met - waited + pass.host_ahead, part.end + pass.host_ahead};
    const Intervals free = subtract(host_waits(*traces_[part.rank], pass), pass.waits);
    Duration left = waited;
    for (Interval wait : clip(free, within)) {
      wait.end = std::min(wait.end, wait.begin + left);
      left -= wait.length();
      pass.waits.push_back(wait);
    }
    pass.waits = unite(std::move(pass.waits));
    pass.host_time -= waited - left;
    pass.device_time -= waited - left;
    unknown_[part.rank] += left;
    if (left < waited) pass.counters.reset(kStartSkew, 1);
  }

  const std::vector<const RankTrace*>& traces_;
  std::vector<RankPass>& ranks_;
  std::vector<Duration> late_;     ///< by rank
  std::vector<Duration> unknown_;  ///< by rank: what may be waiting for others, but is not left out
  std::vector<bool> met_;          ///< by rank
};

std::vector<std::size_t> ranks_that_meet(const std::vector<const RankTrace*>& traces,
                                         const std::vector<RankPass>& ranks) {
  std::vector<std::size_t> found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].count > 0 && has_collectives(*traces[r])) found.push_back(r);
  }
  return found;
}

}  // namespace

bool has_collectives(const RankTrace& rank) {
  return std::ranges::any_of(rank.device_ops, [](const DeviceOp& op) {
    return op.kind == DeviceOpKind::kCollective;
  });
}

void leave_out_start_skew(const std::vector<const RankTrace*>& traces,
                          std::vector<RankPass>& ranks) {
  const std::vector<std::size_t> meeting_ranks = ranks_that_meet(traces, ranks);
  if (meeting_ranks.size() < 2) return;
  Duration shortest = Duration::max();
  Duration longest{};
  for (const std::size_t r : meeting_ranks) {
    if (ranks[r].first > 0) return;
    shortest = std::min(shortest, length_of(ranks[r]));
    longest = std::max(longest, length_of(ranks[r]));
  }
  if (kTelling * (longest - shortest) <= longest) return;
  StartSkew skew(traces, ranks, meeting_ranks);
  for (const Meeting& meeting : find_meetings(traces, ranks)) skew.pass(meeting);
  skew.count();
}

}  // namespace bubblesim::traces
