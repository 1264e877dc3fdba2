#include "traces/align.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "traces/meeting_key.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

constexpr CounterSpec kUnmatched{"align_collectives_unmatched", Severity::kNotice,
    "collectives with no partner on the rank that clocks were compared with"};
constexpr CounterSpec kAmbiguous{"align_offset_ambiguous", Severity::kNotice,
    "1: collectives without numbers repeat so evenly that two offsets of the rank's clock fit: of "
    "those about as large, that which pairs more of them was taken, else the smaller"};

/// Windows of ranks may differ by this many collectives of one group.
constexpr std::int64_t kMostShift = 4096;
/// Pairs looked at to judge one shift; the chosen one uses all.
constexpr std::int64_t kSamples = 512;

/// What must be equal on both ranks for a pair.
struct Token {
  CollectiveKind kind;
  std::uint64_t bytes;
  std::string_view kernel;

  [[nodiscard]] bool fits(const Token& other) const {
    const bool bytes_fit = bytes == 0 || other.bytes == 0 || bytes == other.bytes ||
                           kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kUnknown;
    return kind == other.kind && bytes_fit &&
           (kind != CollectiveKind::kUnknown || kernel == other.kernel);
  }
};

struct Point {
  Token token;
  TraceTime end;
  std::uint64_t sequence;
  StreamId stream{};
};

struct Sequence {
  std::vector<Point> points;  ///< by start on the rank
  bool recorded = true;       ///< all have recorded sequence numbers
};

using RankSequences = std::map<MeetingKey, Sequence>;

bool ends_together(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kUnknown: return true;
    default: return false;
  }
}

RankSequences sequences_of(const RankTrace& trace) {
  RankSequences out;
  for (const DeviceOp& op : trace.device_ops) {
    if (op.collective == kNone) continue;
    const Collective& record = trace.collectives[op.collective];
    if (!ends_together(record.kind)) continue;
    MeetingKey key = group_key(trace, record);
    key.kind = CollectiveKind::kUnknown;  // a group's kinds are numbered together
    Sequence& sequence = out[std::move(key)];
    sequence.points.push_back(
        {{record.kind, record.bytes, trace.names[op.name]}, op.end(), record.sequence, op.stream});
    sequence.recorded = sequence.recorded && record.sequence_recorded;
  }
  return out;
}

/// Where each rank ends together with some other as they are, their clocks agree, and streams that
/// do not end together are of other groups: a group that nothing names becomes several.
void split_unnamed(std::vector<RankSequences>& sequences) {
  std::map<StreamOfRank, std::vector<TraceTime>> ends;
  std::vector<RankSequences> split = sequences;
  for (std::size_t rank = 0; rank < sequences.size(); ++rank) {
    for (const Point& point : split[rank][MeetingKey{}].points) {
      ends[{rank, point.stream}].push_back(point.end);
    }
  }
  const auto groups = ending_together(std::move(ends));
  for (std::size_t rank = 0; rank < sequences.size(); ++rank) {
    const Sequence unnamed = std::move(split[rank].extract(MeetingKey{}).mapped());
    bool alone = !unnamed.points.empty();
    for (const Point& point : unnamed.points) {
      const std::set<std::size_t>& ranks = groups.at({rank, point.stream});
      if (ranks.size() == 1) continue;
      Sequence& sequence = split[rank][{{}, {ranks.begin(), ranks.end()}, {}}];
      sequence.points.push_back(point);
      sequence.recorded = unnamed.recorded;
      alone = false;
    }
    if (alone) return;
  }
  sequences = std::move(split);
}

/// Sends, receives and exchanges by their two ends; all count as the send.
RankSequences transfers_of(const RankTrace& trace) {
  RankSequences out;
  for (const DeviceOp& op : trace.device_ops) {
    if (op.collective == kNone) continue;
    const Collective& record = trace.collectives[op.collective];
    if (!is_point_to_point(record.kind)) continue;
    // Only communicators' names are no other group's: elsewhere, in which group is the place?
    if (record.place != 0 && !trace.names[record.group].starts_with("nccl:")) continue;
    const std::uint64_t bytes = record.kind == CollectiveKind::kSendRecv ? 0 : record.bytes;
    for (const Transfer& transfer : transfers(trace, record)) {
      Sequence& sequence = out[transfer.key];
      sequence.points.push_back({{CollectiveKind::kSend, bytes, {}}, op.end(), record.sequence});
      sequence.recorded = sequence.recorded && record.sequence_recorded;
    }
  }
  return out;
}

/// `reference.end - other.end` of each pair.
using Differences = std::vector<Duration>;

void match_recorded(const Sequence& reference, const Sequence& other, Differences& out) {
  std::multimap<std::uint64_t, const Point*> by_number;
  for (const Point& point : reference.points) by_number.emplace(point.sequence, &point);
  for (const Point& point : other.points) {
    // Kernels that were issued as one group share a number: the first that fits is taken.
    auto [at, last] = by_number.equal_range(point.sequence);
    while (at != last && !at->second->token.fits(point.token)) ++at;
    if (at == last) continue;
    out.push_back(at->second->end - point.end);
    by_number.erase(at);
  }
}

/// Pairs `reference[i + shift]` with `other[i]`, every `stride`-th.
Differences pairs_at(const Sequence& reference, const Sequence& other, std::int64_t shift,
                     std::int64_t stride) {
  Differences out;
  const auto n = static_cast<std::int64_t>(reference.points.size());
  const auto m = static_cast<std::int64_t>(other.points.size());
  for (std::int64_t i = std::max<std::int64_t>(0, -shift); i < m && i + shift < n; i += stride) {
    const Point& a = reference.points[static_cast<std::size_t>(i + shift)];
    const Point& b = other.points[static_cast<std::size_t>(i)];
    if (a.token.fits(b.token)) out.push_back(a.end - b.end);
  }
  return out;
}

struct Candidate {
  std::int64_t shift = 0;
  Duration offset{};
  Duration spread{};         ///< median distance from the offset
  std::int64_t overlap = 0;  ///< collectives that have a partner by their place
};

std::vector<Candidate> candidates_of(const Sequence& reference, const Sequence& other) {
  const auto n = static_cast<std::int64_t>(reference.points.size());
  const auto m = static_cast<std::int64_t>(other.points.size());
  const std::int64_t stride = 1 + std::min(n, m) / kSamples;
  // Fewer pairs than half of what could match say nothing: two points always agree.
  const std::int64_t enough = (std::min(n, m) / stride + 1) / 2;
  std::vector<Candidate> out;
  for (std::int64_t shift = std::max(-m + 1, -kMostShift); shift < std::min(n, kMostShift);
       ++shift) {
    Differences pairs = pairs_at(reference, other, shift, stride);
    if (pairs.empty() || static_cast<std::int64_t>(pairs.size()) < enough) continue;
    Candidate candidate{shift, upper_median(pairs), {},
                        std::min(m, n - shift) - std::max<std::int64_t>(0, -shift)};
    for (Duration& difference : pairs) difference = std::chrono::abs(difference - candidate.offset);
    candidate.spread = upper_median(pairs);
    out.push_back(candidate);
  }
  return out;
}

struct ChosenShift {
  std::int64_t shift = 0;
  bool ambiguous = false;  ///< another fits, whose offset is less than twice as large
};

/// Chooses, among the shifts with about the least spread (steps of a job repeat), one of about the
/// least offset (clocks do not differ by whole steps). Where two offsets are about as large (clocks
/// half a step apart), ranks are taken to have been recorded over the same steps.
std::optional<ChosenShift> best_shift(const Sequence& reference, const Sequence& other) {
  std::vector<Candidate> candidates = candidates_of(reference, other);
  if (candidates.empty()) return std::nullopt;
  const Duration tightest = std::ranges::min(candidates, {}, &Candidate::spread).spread;
  const Duration good = 2 * tightest + std::chrono::microseconds(1);
  std::erase_if(candidates, [&](const Candidate& entry) { return entry.spread > good; });
  const auto size = [](const Candidate& entry) { return std::chrono::abs(entry.offset); };
  const Duration least = size(std::ranges::min(candidates, {}, size));
  std::erase_if(candidates, [&](const Candidate& entry) {
    return size(entry) > least && size(entry) >= 2 * least;
  });
  ChosenShift chosen{0, candidates.size() > 1};
  std::erase_if(candidates, [&](const Candidate& entry) {
    return size(entry) > least + least / 4;
  });
  chosen.shift = std::ranges::min(candidates, {}, [&](const Candidate& entry) {
                   return std::pair(-entry.overlap, size(entry));
                 }).shift;
  return chosen;
}

struct MatchedPairs {
  Differences pairs;
  bool ambiguous = false;
};

MatchedPairs match(const RankSequences& reference, const RankSequences& other) {
  MatchedPairs out;
  for (const auto& [group, sequence] : other) {
    const auto found = reference.find(group);
    if (found == reference.end()) continue;
    if (found->second.recorded && sequence.recorded) {
      match_recorded(found->second, sequence, out.pairs);
    } else if (const auto chosen = best_shift(found->second, sequence)) {
      const Differences pairs = pairs_at(found->second, sequence, chosen->shift, 1);
      out.pairs.insert(out.pairs.end(), pairs.begin(), pairs.end());
      out.ambiguous = out.ambiguous || chosen->ambiguous;
    }
  }
  return out;
}

void shift_rank(RankTrace& trace, Duration shift) {
  for (HostCall& call : trace.host_calls) call.start += shift;
  for (DeviceOp& op : trace.device_ops) op.start += shift;
  for (Marker& marker : trace.markers) marker.start += shift;
  for (MemorySample& sample : trace.memory) sample.at += shift;
  for (HostStall& stall : trace.stalls) stall.start += shift;
  for (ClockPair& pair : trace.clocks) pair.at += shift;
  for (SyncRecord& sync : trace.syncs) sync.at += shift;
  for (CollectiveNote& note : trace.notes) note.start += shift;
}

std::uint64_t points_in(const RankSequences& sequences) {
  std::uint64_t count = 0;
  for (const auto& [group, sequence] : sequences) count += sequence.points.size();
  return count;
}

/// For each rank, the first rank with its clock.
std::vector<std::size_t> clocks_of(const JobTrace& job, std::span<const std::string> names) {
  std::vector<std::size_t> first(job.ranks.size());
  std::map<std::string_view, std::size_t> known;
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    first[rank] = rank;
    if (rank >= names.size() || names[rank].empty()) continue;
    if (job.ranks[rank].counters.count(kRankNotAligned.name) > 0) continue;
    first[rank] = known.try_emplace(names[rank], rank).first->second;
  }
  return first;
}

/// Places ranks one after another: a rank may hang on one that comes after it.
class Placement {
 public:
  explicit Placement(std::vector<std::size_t> clocks)
      : alignments_(clocks.size()), offsets_(clocks.size()), clocks_(std::move(clocks)) {
    offsets_.front() = Duration::zero();
  }

  /// Rounds over the ranks that are not placed, until one places none. True if any was placed.
  bool place_all(const std::vector<RankSequences>& sequences) {
    bool placed_any = false;
    for (bool moved = true; moved; placed_any = placed_any || moved) {
      moved = false;
      for (std::size_t rank = 1; rank < sequences.size(); ++rank) {
        if (offsets_[rank]) continue;
        const std::optional<std::size_t> holder = placed_on_clock_of(rank);
        RankAlignment alignment = place(rank, holder, sequences);
        if (alignment.matched == 0 && !holder) {
          alignments_[rank].unmatched = std::max(alignments_[rank].unmatched, alignment.unmatched);
          continue;
        }
        alignments_[rank] = alignment;
        offsets_[rank] = alignment.offset;
        moved = true;
      }
    }
    return placed_any;
  }

  [[nodiscard]] bool is_placed(std::size_t rank) const { return offsets_[rank].has_value(); }
  [[nodiscard]] std::vector<RankAlignment> take() { return std::move(alignments_); }
  [[nodiscard]] Differences& residuals() { return residuals_; }

 private:
  [[nodiscard]] std::optional<std::size_t> placed_on_clock_of(std::size_t rank) const {
    for (std::size_t other = 0; other < clocks_.size(); ++other) {
      if (clocks_[other] == clocks_[rank] && offsets_[other]) return other;
    }
    return std::nullopt;
  }

  /// Matches `rank` with the placed ranks, in order, until one shares a collective with it. Where
  /// `holder` has placed its clock, only ranks of that clock are looked at, and by how much their
  /// ends differ is all that they say.
  RankAlignment place(std::size_t rank, std::optional<std::size_t> holder,
                      const std::vector<RankSequences>& sequences) {
    RankAlignment out;
    out.unmatched = points_in(sequences[rank]);
    if (holder) {
      out.reference = static_cast<std::uint32_t>(*holder);
      out.offset = *offsets_[*holder];
    }
    for (std::size_t other = 0; other < sequences.size(); ++other) {
      if (other == rank || !offsets_[other]) continue;
      if (holder && clocks_[other] != clocks_[rank]) continue;
      auto [pairs, ambiguous] = match(sequences[other], sequences[rank]);
      if (pairs.empty()) continue;
      out.ambiguous = ambiguous && !holder;
      const Duration local = holder ? Duration::zero() : upper_median(pairs);
      out.reference = static_cast<std::uint32_t>(other);
      out.matched = pairs.size();
      out.unmatched -= pairs.size();
      out.offset = local + *offsets_[other];
      for (Duration& difference : pairs) difference = std::chrono::abs(difference - local);
      residuals_.insert(residuals_.end(), pairs.begin(), pairs.end());
      out.residual_max = *std::max_element(pairs.begin(), pairs.end());
      out.residual_median = upper_median(pairs);
      return out;
    }
    return out;
  }

  std::vector<RankAlignment> alignments_;
  std::vector<std::optional<Duration>> offsets_;
  std::vector<std::size_t> clocks_;
  Differences residuals_;
};

}  // namespace

AlignmentReport align_ranks(JobTrace& job, std::span<const std::string> clocks) {
  AlignmentReport report;
  if (job.ranks.empty()) return report;
  if (std::any_of(job.ranks.begin(), job.ranks.end(), has_inferred_layout)) {
    // Ranks that were laid out have one clock already; there is nothing to measure it by.
    const std::uint32_t reference = job.ranks.front().rank;
    for (const RankTrace& trace : job.ranks) report.ranks.push_back({trace.rank, reference});
    return report;
  }
  std::vector<RankSequences> collectives;
  std::vector<RankSequences> transfers;
  for (const RankTrace& trace : job.ranks) {
    collectives.push_back(sequences_of(trace));
    transfers.push_back(transfers_of(trace));
  }
  split_unnamed(collectives);
  Placement placement(clocks_of(job, clocks));
  placement.place_all(collectives);
  while (placement.place_all(transfers) && placement.place_all(collectives)) {
  }
  report.ranks = placement.take();
  Differences& residuals = placement.residuals();
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    RankTrace& trace = job.ranks[i];
    RankAlignment& aligned = report.ranks[i];
    aligned.rank = trace.rank;
    aligned.reference = job.ranks[aligned.reference].rank;
    shift_rank(trace, aligned.offset);
    report.matched += aligned.matched;
    report.unmatched += aligned.unmatched;
    // A trace that was written after it was aligned has the counts of that time.
    trace.counters.reset(kUnmatched, aligned.unmatched);
    trace.counters.reset(kRankNotAligned, placement.is_placed(i) ? 0 : 1);
    report.clocks_apart |= !placement.is_placed(i);
    trace.counters.reset(kAmbiguous, aligned.ambiguous ? 1 : 0);
  }
  if (!residuals.empty()) {
    report.residual_max = *std::max_element(residuals.begin(), residuals.end());
    report.residual_median = upper_median(residuals);
  }
  return report;
}

}  // namespace bubblesim::traces
