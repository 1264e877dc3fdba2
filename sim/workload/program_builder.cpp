#include "sim/workload/program_builder.hpp"

#include <algorithm>

#include "sim/workload/join_collectives.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {
namespace {

Result<Draft> build_draft(const traces::RankTrace& trace, const BuildOptions& options) {
  Draft draft = collect(trace, options);
  if (draft.ops.empty()) {
    return fail(trace.provenance.source, {},
                "found no device operation in the window, expected at least one");
  }
  trim_overlaps(draft);
  find_edges(draft);
  assign_lags(draft);
  find_waits(draft);
  find_hand_overs(draft);
  tie_free_threads(draft);
  return draft;
}

}  // namespace

std::vector<std::uint32_t> participants(const JobProgram& job) {
  std::vector<std::uint32_t> counts;
  counts.reserve(job.collectives.size());
  for (const JoinedCollective& joined : job.collectives) counts.push_back(joined.participants);
  return counts;
}

std::vector<network::MeetingSpec> meetings(const JobProgram& job) {
  std::vector<network::MeetingSpec> out;
  out.reserve(job.collectives.size());
  for (const JoinedCollective& joined : job.collectives) {
    const bool modelled = joined.transfer != kNoIndex;
    out.push_back({joined.participants, modelled ? &job.transfers[joined.transfer] : nullptr});
  }
  return out;
}

Result<Program> build_program(const traces::RankTrace& trace, const hardware::GpuSpec& spec,
                              const BuildOptions& options) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Draft draft, build_draft(trace, options));
  return emit(draft, spec);
}

Result<JobProgram> build_job_program(const traces::JobTrace& job, const hardware::GpuSpec& spec,
                                     const BuildOptions& options) {
  std::vector<Draft> drafts;
  for (const traces::RankTrace& trace : job.ranks) {
    BUBBLESIM_ASSIGN_OR_RETURN(Draft draft, build_draft(trace, options));
    drafts.push_back(std::move(draft));
  }
  JobProgram program;
  for (const Draft& draft : drafts) program.ranks.push_back(emit(draft, spec));
  TraceTime begin = TraceTime::max();
  for (const Draft& draft : drafts) begin = std::min(begin, draft.begin);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    program.ranks[i].start_offset = drafts[i].begin - begin;
  }
  join_collectives(drafts, program);
  for (const Program& rank : program.ranks) program.counters.merge(rank.counters);
  return program;
}

}  // namespace bubblesim::workload
