// A synthesised job: programs of its ranks from a model, a plan and a cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::synth {

inline constexpr CounterSpec kFoldedRanks{
    "synth_ranks_folded", Severity::kInfo,
    "ranks that are not simulated: another that behaves alike stands for them"};

inline constexpr CounterSpec kHiddenExpertRanks{
    "synth_expert_ranks_folded", Severity::kNotice,
    "ranks whose experts have fewer tokens than the busiest rank's, which stands for them: their "
    "bubbles are not shown (\"folding\": \"nothing\" shows them)"};

inline constexpr CounterSpec kUnusedOverlapSms{
    "synth_overlap_sms_unused", Severity::kNotice,
    "SMs of tensor_overlap/sms above the channels that NCCL opens: they change nothing"};

inline constexpr CounterSpec kLateExchanges{
    "synth_exchanges_fall_behind", Severity::kNotice,
    "ranks whose exchanges between regions take longer than the iterations between them: training "
    "does not wait, and ever more are under way"};

struct SynthesisedJob {
  workload::JobProgram program;
  std::vector<MemoryNeed> memory;  ///< by simulated rank
  std::uint32_t world_size = 1;    ///< ranks of the whole job
  std::uint32_t fold = 1;          ///< ranks that each simulated one represents
  std::uint64_t late_exchanges = 0;  ///< below; counted (kLateExchanges)
  double samples = 0;              ///< of an iteration, whole job
  double flops = 0;                ///< of an iteration, whole job, recomputation included
  double model_flops = 0;          ///< the same without recomputation
};

/// Programs of the simulated ranks, whose collectives have their full size.
[[nodiscard]] SynthesisedJob synthesise(const ParallelPlan& plan);

/// The time of an iteration of a job that has its GPUs to itself.
struct LoneIteration {
  Duration time{};           ///< mean over a pass of the first rank, steady
  std::uint64_t kernels = 0; ///< of all simulated ranks, in an iteration
  std::uint64_t events = 0;  ///< of the whole simulation
};

/// Runs two passes and times the second, which begins like every later one.
[[nodiscard]] Result<LoneIteration> time_alone(const workload::JobProgram& job,
                                               const hardware::GpuSpec& gpu);

/// Counts ranks whose exchange between regions, for which no kernel waits, takes longer than a
/// pass: since each pass starts another, ever more of them are under way. Runs two passes.
[[nodiscard]] std::uint64_t late_exchanges(const workload::JobProgram& job,
                                           const hardware::GpuSpec& gpu);

}  // namespace bubblesim::synth
