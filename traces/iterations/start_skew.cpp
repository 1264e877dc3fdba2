#include "traces/iterations/start_skew.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/iterations/before_window.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
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

  // Of a rank whose collectives met nobody's, all that it took longer by may be waiting.
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
      if (length_of(ranks_[r]) > least) ranks_[r].counters.reset(kStartSkewUnknown, 1);
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
