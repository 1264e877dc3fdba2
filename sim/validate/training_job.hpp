// Simulations of training jobs and pipelines, for judges and fits of measured tables
// (notebooks/lab): an iteration alone, and schedules compared with closed forms and published
// figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::validate {

/// The hardware and software of a measured table's jobs.
struct Testbed {
  hardware::ClusterSpec cluster;
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  synth::SoftwareSpec software;
};

/// Finds all parts by name in a folder of configs. `cluster`: a file's name; `software`: a file's
/// name or a path.
[[nodiscard]] CheckedResult<Testbed> find_testbed(const std::string& configs,
                                                  const std::string& cluster,
                                                  const std::string& software);

/// A plan given as text; `label` is its file's name in faults, and paths in it are relative to
/// `folder`.
[[nodiscard]] CheckedResult<synth::PlanSpec> plan_of(const std::string& text,
                                                     const std::string& label,
                                                     const std::string& folder);

enum class MemoryCheck : std::uint8_t { kMade, kLeftOut };

/// The time of an iteration of the job alone, folded. `gpus`: number that the cluster must have; 0:
/// its own number. Fault: the plan cannot be built, or does not fit the device's memory.
[[nodiscard]] CheckedResult<double> iteration_seconds(const Testbed& machine,
                                                      const model::ModelSpec& model,
                                                      const synth::PlanSpec& plan,
                                                      std::uint32_t gpus, MemoryCheck check);

/// `cases`: number of the given times with a closed form; `equal`: number of these cases whose idle
/// times and peaks of activations equal the closed form exactly.
struct ClosedFormCases {
  std::uint32_t cases = 0;
  std::uint32_t equal = 0;
};

/// No cases if the schedule's rule refuses the request.
[[nodiscard]] ClosedFormCases closed_form_cases(const std::string& schedule,
                                                const pipeline::ScheduleRequest& request,
                                                std::span<const pipeline::StageTimes> times);

/// The makespan of stages joined by edges, under the schedule "graph"; each part of a micro-batch
/// takes 1.
[[nodiscard]] Result<std::int64_t> graph_makespan(
    std::uint32_t stages, std::uint32_t micro_batches,
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges);

}  // namespace bubblesim::validate
