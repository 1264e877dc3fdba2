#include "sim/workload/program_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/thread_pool.hpp"
#include "sim/workload/build_counters.hpp"
#include "sim/workload/find_meetings.hpp"
#include "sim/workload/program_draft.hpp"
#include "traces/record_names.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::workload {
namespace {

// ---- Makes one collective of the kernels that meet (find_meetings).

using traces::CollectiveKind;

// A rank that ended this long before the last one started cannot have waited for it.
constexpr Duration kNotWaitingMargin = std::chrono::microseconds(50);

TraceTime last_start(const std::vector<Part>& parts) {
  TraceTime last = TraceTime::min();
  for (const Part& part : parts) last = std::max(last, part.operation->start);
  return last;
}

TraceTime median_start(const std::vector<Part>& parts) {
  std::vector<TraceTime> starts;
  for (const Part& part : parts) starts.push_back(part.operation->recorded_start);
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>((starts.size() - 1) / 2);
  std::ranges::nth_element(starts, middle);
  return *middle;
}

/// How many have no meeting, by rank.
using LostKinds = std::map<std::uint32_t, std::map<CollectiveKind, std::uint64_t>>;

class Joiner {
 public:
  Joiner(const std::vector<RankParts>& ranks, JobProgram& program)
      : ranks_(ranks), program_(program), late_(ranks.size()) {}

  void join(const traces::MeetingKey& key, std::vector<Part> parts) {
    const CollectivePart* const send = buffered_send(key, parts);
    if (send == nullptr) drop_not_waiting(parts);
    if (parts.size() < 2) return;
    JoinedCollective joined;
    joined.participants = static_cast<std::uint32_t>(parts.size());
    joined.point_to_point = traces::is_point_to_point(key.kind) && parts.size() == 2;
    joined.kind = key.kind;
    joined.group = group_index(key.group);
    if (key.kind == CollectiveKind::kSend) {
      joined.from = key.members[0];
      joined.to = key.members[1];
    }
    joined.buffered = send != nullptr;
    const auto index = static_cast<std::uint32_t>(program_.collectives.size());
    const TraceTime arrival = last_start(parts);
    if (!joined.point_to_point) note_lateness(parts);
    for (const Part& part : parts) {
      const traces::Collective& recorded = *part.operation->collective;
      joined.bytes = std::max(joined.bytes, recorded.bytes);
      joined.group_size = std::max(joined.group_size, recorded.group_size);
      if (recorded.group_size > parts.size() && !traces::is_point_to_point(key.kind)) {
        program_.ranks[part.rank].counters.add(kMissingPeers);
      }
      program::Op& op = op_of(part);
      op.collective = index;
      const TraceTime begin = part.operation == send ? send->start : arrival;
      op.duration = std::max(Duration{}, part.operation->end - begin);
    }
    program_.collectives.push_back(joined);
  }

  void count_unjoined() {
    Duration all{};
    Duration lost{};
    LostKinds lost_kinds;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      CounterSet& counters = program_.ranks[rank].counters;
      for (const CollectivePart& operation : ranks_[rank].parts) {
        const Duration time = operation.end - operation.start;
        all += time;
        const Part part{rank, &operation};
        if (op_of(part).collective != program::kNoIndex || not_waiting_.contains(part)) continue;
        if (!has_others(ranks_, part)) {
          counters.add(kAlone);
          continue;
        }
        lost += time;
        ++lost_kinds[ranks_[rank].trace->rank][operation.collective->kind];
      }
    }
    if (lost_kinds.empty()) return;
    const double share = all > Duration{} ? 100.0 * static_cast<double>(lost.count()) /
                                                static_cast<double>(all.count())
                                          : 0.0;
    report(lost_kinds, fmt::format("{}; {:.1f} % of communication time", kNotJoined.help, share));
  }

  void set_lateness() {
    for (const Late& late : late_) {
      program_.lateness.push_back(late.times == 0 ? Duration{} : late.sum / late.times);
    }
  }

 private:
  /// One rank's, over the collectives in which it met others.
  struct Late {
    Duration sum{};
    std::int64_t times = 0;
  };

  void note_lateness(const std::vector<Part>& parts) {
    const TraceTime median = median_start(parts);
    for (const Part& part : parts) {
      late_[part.rank].sum += part.operation->recorded_start - median;
      ++late_[part.rank].times;
    }
  }

  void report(const LostKinds& lost_kinds, std::string help) {
    constexpr std::size_t kRanksNamed = 8;
    std::uint64_t count = 0;
    std::size_t named = 0;
    for (const auto& [rank, kinds] : lost_kinds) {
      if (named++ < kRanksNamed) help += fmt::format("; rank {}:", rank);
      for (const auto& [kind, times] : kinds) {
        count += times;
        if (named > kRanksNamed) continue;
        help += fmt::format(" {} {}", times, traces::name_of(kind));
      }
    }
    if (named > kRanksNamed) help += fmt::format("; {} more ranks", named - kRanksNamed);
    program_.counters.add(kNotJoined.name, {kNotJoined.severity, std::move(help), count});
  }

  program::Op& op_of(const Part& part) {
    return program_.ranks[part.rank].ops[part.operation->op];
  }

  std::uint32_t group_index(const std::string& name) {
    if (name.empty()) return program::kNoIndex;
    const auto [place, fresh] =
        groups_.try_emplace(name, static_cast<std::uint32_t>(program_.groups.size()));
    if (fresh) program_.groups.push_back(name);
    return place->second;
  }

  // A send in a graph whose starts were laid out, or that fitted into NCCL's buffers: it had ended
  // when its receive began. Any other send waited, and waits again.
  const CollectivePart* buffered_send(const traces::MeetingKey& key,
                                      const std::vector<Part>& parts) const {
    if (key.kind != CollectiveKind::kSend) return nullptr;
    for (const Part& part : parts) {
      if (part.operation->collective->kind != CollectiveKind::kSend) continue;
      const bool early = part.operation->end + kNotWaitingMargin < last_start(parts);
      if (early || traces::has_inferred_layout(*ranks_[part.rank].trace)) return part.operation;
    }
    return nullptr;
  }

  void drop_not_waiting(std::vector<Part>& parts) {
    for (bool dropped = true; dropped && parts.size() >= 2;) {
      dropped = false;
      const TraceTime arrival = last_start(parts);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].operation->end + kNotWaitingMargin >= arrival) continue;
        program_.ranks[parts[i].rank].counters.add(kNotWaiting);
        not_waiting_.insert(parts[i]);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        dropped = true;
        break;
      }
    }
  }

  const std::vector<RankParts>& ranks_;
  JobProgram& program_;
  std::map<std::string, std::uint32_t> groups_;
  std::set<Part> not_waiting_;
  std::vector<Late> late_;
};

RankParts collective_parts(const Draft& draft) {
  RankParts out{draft.trace, {}};
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    const DraftOp& op = draft.ops[i];
    const traces::DeviceOp& recorded = draft.recorded(op);
    if (recorded.collective == traces::kNone) continue;
    out.parts.push_back({i, &draft.trace->collectives[recorded.collective], recorded.stream,
                         op.start, op.end, recorded.start, recorded.end()});
  }
  std::ranges::stable_sort(out.parts, {}, &CollectivePart::recorded_end);
  return out;
}

// Joins the collectives of all ranks. Sets each joined operation's duration to its end minus the
// last rank's start; a send that did not wait for its receive, because its start was laid out
// (traces/trace_origin.hpp) or because it ended before, keeps its own. A kernel without a meeting
// is counted: a loss, by rank and kind, with its share of the communication time; a notice where no
// rank that it could meet was recorded. `program.ranks` were emitted from the drafts of `ranks`, in
// the same order.
void join_collectives(const std::vector<RankParts>& ranks, JobProgram& program) {
  Joiner joiner(ranks, program);
  for (FoundMeeting& found : find_meetings(ranks)) joiner.join(found.key, std::move(found.parts));
  joiner.count_unjoined();
  joiner.set_lateness();
}

/// A step holds 4.29 s (program::kLongestShortSpan): half a million steps a thread.
constexpr Duration kLongestWindow = std::chrono::hours(24 * 30);

constexpr std::size_t kMostStreams = std::numeric_limits<decltype(program::Op::stream)>::max();

/// "; of the recording is lost: ..." where something is.
std::string losses_of(const CounterSet& counters) {
  std::string text;
  for (const auto& [name, entry] : counters) {
    if (entry.severity < Severity::kLoss) continue;
    text += (text.empty() ? "; of the recording is lost: " : "; ") + name + " (" + entry.help + ")";
  }
  return text;
}

// `pass`: null for the whole recording; outlives the draft.
Result<Draft> build_draft(const traces::RankTrace& trace, const traces::RankPass* pass,
                          Window window, HostShare share = {}) {
  if (trace.streams.size() > kMostStreams) {
    return fail(trace.provenance.source, {},
                "found " + std::to_string(trace.streams.size()) + " streams in rank " +
                    std::to_string(trace.rank) + ", expected at most " +
                    std::to_string(kMostStreams) + ", which a program's operations can name");
  }
  Draft draft = collect(trace, pass, window, share);
  if (draft.ops.empty()) {
    return fail(trace.provenance.source, {},
                "found no device operation in the window, expected at least one" +
                    losses_of(trace.counters));
  }
  if (draft.end - draft.begin > kLongestWindow) {
    return fail(trace.provenance.source, {},
                "found a window of " + format_duration(draft.end - draft.begin) +
                    ", expected at most " + format_duration(kLongestWindow) +
                    ", which a program's steps can hold");
  }
  trim_overlaps(draft);
  find_edges(draft);
  assign_lags(draft);
  add_unknown_waits(draft);
  find_waits(draft);
  find_peer_calls(draft);
  find_hand_overs(draft);
  tie_free_threads(draft);
  explain_times(draft);
  return draft;
}

/// What is left of a rank once its draft is gone.
struct BuiltRank {
  program::Program program;
  RankParts parts;
  TraceTime begin{};
  traces::Explanation explained;
  std::vector<CallPlace> places;
};

Result<BuiltRank> build_rank(const traces::JobTrace& job, std::uint32_t place,
                             const traces::RankPass* pass, const hardware::GpuSpec& spec,
                             Window window, const SharedHosts& hosts) {
  BUBBLESIM_ASSIGN_OR_RETURN(Draft draft,
                             build_draft(job.ranks[place], pass, window, {&hosts, place}));
  BuiltRank built;
  built.parts = collective_parts(draft);
  built.begin = draft.begin;
  built.explained = draft.explained;
  built.program = emit(std::move(draft), spec, built.places);
  return built;
}

// Ranks know nothing of each other until they are joined, but for the hosts that they share.
std::vector<Result<BuiltRank>> build_ranks(const traces::JobTrace& job,
                                           const traces::JobPass& pass,
                                           const hardware::GpuSpec& spec,
                                           const BuildOptions& options) {
  const SharedHosts hosts(job, pass.ranks);
  std::vector<Result<BuiltRank>> built(job.ranks.size());
  engine::ThreadPool pool(std::min(options.threads, job.ranks.size()));
  pool.run(job.ranks.size(), [&](std::size_t i) {
    const traces::RankPass* its_pass = pass.ranks.empty() ? nullptr : &pass.ranks[i];
    built[i] = build_rank(job, static_cast<std::uint32_t>(i), its_pass, spec, options.window,
                          hosts);
  });
  return built;
}

void set_start_offsets(const std::vector<TraceTime>& begins, JobProgram& program) {
  const TraceTime first = *std::ranges::min_element(begins);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    program.ranks[i].start_offset = begins[i] - first;
  }
}

}  // namespace

std::vector<network::MeetingSpec> meetings(const JobProgram& job) {
  std::vector<network::MeetingSpec> out;
  out.reserve(job.collectives.size());
  for (const JoinedCollective& joined : job.collectives) {
    const bool modelled = joined.transfer != program::kNoIndex;
    out.push_back({joined.participants, modelled ? &job.transfers[joined.transfer] : nullptr,
                   joined.buffered ? joined.from : network::kNoSender});
  }
  return out;
}

Result<program::Program> build_program(const traces::RankTrace& trace,
                                       const hardware::GpuSpec& spec, const BuildOptions& options) {
  std::optional<traces::RankPass> pass;
  if (options.window != Window::kWhole) {
    BUBBLESIM_ASSIGN_OR_RETURN(pass, traces::find_rank_pass(trace, options.iterations));
    if (options.window == Window::kMedianIteration) pass = traces::median_iteration(trace, *pass);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(Draft draft,
                             build_draft(trace, pass ? &*pass : nullptr, options.window));
  std::vector<CallPlace> places;
  return emit(std::move(draft), spec, places);
}

Result<JobProgram> build_job_program(const traces::JobTrace& job, const hardware::GpuSpec& spec,
                                     const BuildOptions& options) {
  traces::JobPass pass;
  if (options.window != Window::kWhole) {
    BUBBLESIM_ASSIGN_OR_RETURN(pass, traces::find_job_pass(job, options.iterations));
  }
  if (options.window == Window::kMedianIteration) {
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      pass.ranks[i] = traces::median_iteration(job.ranks[i], pass.ranks[i]);
    }
  }
  JobProgram program;
  program.ranks.reserve(job.ranks.size());  // growing would copy them
  std::vector<RankParts> parts;
  std::vector<TraceTime> begins;
  std::vector<std::vector<CallPlace>> places;
  for (Result<BuiltRank>& built : build_ranks(job, pass, spec, options)) {
    if (!built) return tl::unexpected<Error>(built.error());
    program.ranks.push_back(std::move(built->program));
    parts.push_back(std::move(built->parts));
    begins.push_back(built->begin);
    places.push_back(std::move(built->places));
    program.explained.push_back(built->explained);
  }
  if (!begins.empty()) set_start_offsets(begins, program);
  resolve_peers(job, places, program);
  join_collectives(parts, program);
  for (const program::Program& rank : program.ranks) program.counters.merge(rank.counters);
  program.iterations_recorded = static_cast<std::uint32_t>(pass.iterations_recorded());
  program.iterations_used = static_cast<std::uint32_t>(pass.iterations_used());
  if (!pass.ranks.empty()) program.iterations_text = pass.text();
  program.queue_cut = std::ranges::any_of(pass.ranks, &traces::RankPass::queue_cut);
  program.start_skew_unknown =
      std::ranges::any_of(pass.ranks, &traces::RankPass::start_skew_unknown);
  return program;
}

}  // namespace bubblesim::workload
