// Attribution of bubbles; the rules stand in the header.
#include "traces/inspect/bubbles.hpp"

#include <algorithm>
#include <limits>

#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

// ---- What a rank's host threads did while the device was empty: blocked, silent, or neither.
// The terms are defined in bubbles.hpp.

struct HostPauses {
  Intervals blocked;  ///< a driving thread is blocked and none is in another call
  Intervals silent;   ///< at least `host_silence` without a call of a driving thread
};

/// By thread index; where no kernel launch was recorded, every thread drives.
std::vector<char> driving_threads(const RankTrace& rank) {
  std::vector<char> driving;
  for (const HostCall& call : rank.host_calls) {
    if (call.kind != HostCallKind::kLaunchKernel && call.kind != HostCallKind::kLaunchGraph) {
      continue;
    }
    if (call.thread.index() >= driving.size()) driving.resize(call.thread.index() + 1, 0);
    driving[call.thread.index()] = 1;
  }
  if (driving.empty()) driving.assign(rank.threads.size(), 1);
  return driving;
}

/// Calls that returned no earlier than a copy or memset of theirs ended.
std::vector<char> calls_that_waited(const RankTrace& rank) {
  std::vector<char> waited(rank.host_calls.size(), 0);
  for (const DeviceOp& op : rank.device_ops) {
    const bool transfer = op.kind == DeviceOpKind::kCopy || op.kind == DeviceOpKind::kMemset;
    if (!transfer || op.launch >= waited.size()) continue;
    if (rank.host_calls[op.launch].end() >= op.end()) waited[op.launch] = 1;
  }
  return waited;
}

bool always_waits(HostCallKind kind) {
  return is_synchronisation(kind) || kind == HostCallKind::kFree;
}

Intervals silent_stretches(const Intervals& calls, Duration host_silence) {
  const Interval always{TraceTime{Duration{std::numeric_limits<std::int64_t>::min() / 4}},
                        TraceTime{Duration{std::numeric_limits<std::int64_t>::max() / 4}}};
  Intervals pauses = gaps_within(calls, always);
  std::erase_if(pauses, [&](const Interval& pause) { return pause.length() < host_silence; });
  return pauses;
}

// Silence is reckoned over all recorded time: before the first and after the last call, too.
HostPauses host_activity(const RankTrace& rank, Duration host_silence) {
  const std::vector<char> driving = driving_threads(rank);
  const std::vector<char> waited = calls_that_waited(rank);
  std::vector<Interval> blocking;
  std::vector<Interval> working;
  for (std::size_t i = 0; i < rank.host_calls.size(); ++i) {
    const HostCall& call = rank.host_calls[i];
    const bool drives = call.thread.index() < driving.size() && driving[call.thread.index()] != 0;
    if (!drives || call.kind == HostCallKind::kEventQuery) continue;
    const bool blocks = always_waits(call.kind) || waited[i] != 0;
    (blocks ? blocking : working).push_back({call.start, std::max(call.start, call.end())});
  }
  const Intervals blocked = unite(std::move(blocking));
  const Intervals busy = unite(std::move(working));
  std::vector<Interval> in_calls = blocked;
  in_calls.insert(in_calls.end(), busy.begin(), busy.end());
  return {subtract(blocked, busy), silent_stretches(unite(std::move(in_calls)), host_silence)};
}

Intervals parts_within(const Intervals& spans, Interval part) {
  Intervals inside = clip(spans, part);
  std::erase_if(inside, [](const Interval& span) { return span.length() == Duration{}; });
  return inside;
}

constexpr CounterSpec kGapWithoutLaunch{
    "inspect_gap_without_launch", Severity::kNotice,
    "idle gaps that end with an operation whose launch is not in the trace; their cause is "
    "guessed from their length alone"};

constexpr std::array<std::string_view, kBubbleCauseCount> kNames{
    "collective_wait", "peer_wait",   "transfer",   "launch_bound",
    "synchronisation", "host_silent", "turnaround", "other"};
constexpr std::array<std::string_view, kBubbleCauseCount> kLabels{
    "collective wait", "peer wait (send/recv)", "copies only", "launch bound",
    "synchronisation", "host silent",           "turnaround",  "other"};

void add_all(std::vector<BubbleSegment>& out, const Intervals& spans, BubbleCause cause) {
  for (const Interval& span : spans) out.push_back({span, cause});
}

/// Attributes gaps.
class GapExplainer {
 public:
  GapExplainer(const RankTrace& rank, const BubbleThresholds& thresholds, CounterSet& counters)
      : rank_(rank),
        thresholds_(thresholds),
        counters_(counters),
        host_(host_activity(rank, thresholds.host_silence)) {}

  void explain(Interval gap, const DeviceOp& next, std::vector<BubbleSegment>& out) {
    if (next.launch >= rank_.host_calls.size()) {
      counters_.add(kGapWithoutLaunch);
      out.push_back({gap, by_length(gap.length())});
      return;
    }
    const TraceTime queued = rank_.host_calls[next.launch].end();
    const Interval before{gap.begin, std::clamp(queued, gap.begin, gap.end)};
    if (before.length() > Duration{}) explain_unlaunched(before, out);
    const Interval after{before.end, gap.end};
    if (after.length() <= Duration{}) return;
    const bool latency = gap.end - queued <= thresholds_.launch_latency_limit;
    out.push_back({after, latency ? BubbleCause::kLaunchBound : by_length(after.length())});
  }

 private:
  [[nodiscard]] BubbleCause by_length(Duration length) const {
    return length <= thresholds_.turnaround_limit ? BubbleCause::kTurnaround : BubbleCause::kOther;
  }

  void explain_unlaunched(Interval part, std::vector<BubbleSegment>& out) {
    const Intervals blocked = parts_within(host_.blocked, part);
    const Intervals silent = parts_within(host_.silent, part);
    add_all(out, blocked, BubbleCause::kSynchronisation);
    add_all(out, silent, BubbleCause::kHostSilent);
    const Intervals rest = subtract(subtract({part}, blocked), silent);
    add_all(out, rest,
            blocked.empty() ? BubbleCause::kLaunchBound : BubbleCause::kSynchronisation);
  }

  const RankTrace& rank_;
  const BubbleThresholds& thresholds_;
  CounterSet& counters_;
  HostPauses host_;
};

void explain_gaps(const RankTrace& rank, const DeviceUse& use, const BubbleThresholds& thresholds,
                  CounterSet& counters, std::vector<BubbleSegment>& out) {
  GapExplainer explainer(rank, thresholds, counters);
  auto next = rank.device_ops.begin();
  for (const Interval& gap : gaps_within(use.busy, use.window)) {
    next = std::find_if(next, rank.device_ops.end(),
                        [&](const DeviceOp& op) { return op.start >= gap.end; });
    if (next == rank.device_ops.end()) {
      out.push_back({gap, BubbleCause::kOther});
    } else {
      explainer.explain(gap, *next, out);
    }
  }
}

std::vector<BubbleSegment> join_adjacent(std::vector<BubbleSegment> segments) {
  std::ranges::sort(segments, {}, [](const BubbleSegment& segment) { return segment.span.begin; });
  std::vector<BubbleSegment> joined;
  for (const BubbleSegment& segment : segments) {
    if (!joined.empty() && joined.back().cause == segment.cause &&
        joined.back().span.end == segment.span.begin) {
      joined.back().span.end = segment.span.end;
    } else {
      joined.push_back(segment);
    }
  }
  return joined;
}

}  // namespace

std::string_view bubble_cause_name(BubbleCause cause) {
  return kNames[static_cast<std::size_t>(cause)];
}

std::string_view bubble_cause_label(BubbleCause cause) {
  return kLabels[static_cast<std::size_t>(cause)];
}

bool is_peer_operation(const RankTrace& rank, const DeviceOp& op) {
  if (op.kind != DeviceOpKind::kCollective || op.collective >= rank.collectives.size()) {
    return false;
  }
  return is_point_to_point(rank.collectives[op.collective].kind);
}

DeviceUse device_use(const RankTrace& rank) {
  std::vector<Interval> busy;
  std::vector<Interval> own;
  std::vector<Interval> transfer;
  std::vector<Interval> collective;
  std::vector<Interval> peer;
  busy.reserve(rank.device_ops.size());
  for (const DeviceOp& op : rank.device_ops) {
    const Interval span{op.start, std::max(op.start, op.end())};
    busy.push_back(span);
    if (op.kind == DeviceOpKind::kKernel) {
      own.push_back(span);
    } else if (op.kind != DeviceOpKind::kCollective) {
      transfer.push_back(span);
    } else {
      (is_peer_operation(rank, op) ? peer : collective).push_back(span);
    }
  }
  DeviceUse use{{}, unite(std::move(busy)), unite(std::move(own)), unite(std::move(transfer)),
                unite(std::move(collective)), unite(std::move(peer))};
  if (!use.busy.empty()) use.window = {use.busy.front().begin, use.busy.back().end};
  return use;
}

std::vector<BubbleSegment> bubble_segments(const RankTrace& rank, const DeviceUse& use,
                                           const BubbleThresholds& thresholds,
                                           CounterSet& counters) {
  std::vector<BubbleSegment> segments;
  add_all(segments, subtract(use.collective, use.own), BubbleCause::kCollectiveWait);
  const Intervals peers = subtract(subtract(use.peer, use.own), use.collective);
  add_all(segments, peers, BubbleCause::kPeerWait);
  const Intervals transfers = subtract(subtract(use.transfer, use.own), use.collective);
  add_all(segments, subtract(transfers, use.peer), BubbleCause::kTransfer);
  explain_gaps(rank, use, thresholds, counters, segments);
  return join_adjacent(std::move(segments));
}

}  // namespace bubblesim::traces
