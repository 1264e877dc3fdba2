#include "sim/synth/record_trace.hpp"

#include <algorithm>

#include "sim/synth/device_info.hpp"
#include "sim/synth/rank_trace.hpp"
#include "sim/workload/lone_job.hpp"
#include "traces/made_trace.hpp"

namespace bubblesim::synth {
namespace {

std::uint32_t world_size(const workload::JobProgram& job, const RecordSetup& setup) {
  std::uint32_t size = std::max(setup.world_size, static_cast<std::uint32_t>(job.ranks.size()));
  for (const program::Program& rank : job.ranks) size = std::max(size, rank.rank + 1);
  return size;
}

}  // namespace

Result<traces::JobTrace> record_trace(const workload::JobProgram& job,
                                      const hardware::GpuSpec& spec, const RecordSetup& setup) {
  if (job.ranks.empty()) return fail("found a job of no rank, expected at least one");
  if (setup.iterations == 0) return fail("found 0 iterations to record, expected at least 1");
  const std::uint32_t in_pass = std::max(1U, job.ranks.front().iterations);
  const std::uint64_t passes = (setup.iterations + in_pass - 1) / in_pass;
  std::vector<RankRecording> recordings;
  recordings.reserve(job.ranks.size());
  for (const program::Program& rank : job.ranks) recordings.emplace_back(rank, passes);
  workload::LoneJob lone(job, spec, {workload::Repeat::kLoop, passes, setup.perturbations},
                         workload::pointers_to(recordings));
  lone.run();
  BUBBLESIM_RETURN_IF_ERROR(lone.finished());
  const std::vector<CollectiveLabel> labels = label_collectives(job);
  traces::JobTrace trace;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    traces::RankTrace rank =
        make_rank_trace(job, job.ranks[i], labels, recordings[i], setup.iterations);
    rank.world_size = world_size(job, setup);
    rank.device = device_info(spec);
    rank.provenance = setup.provenance;
    rank.provenance.format = traces::kMadeFormat;
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

}  // namespace bubblesim::synth
