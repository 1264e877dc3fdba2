#include "sim/workload/program_builder.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/thread_pool.hpp"
#include "sim/workload/join_collectives.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

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
  return program;
}

}  // namespace bubblesim::workload
