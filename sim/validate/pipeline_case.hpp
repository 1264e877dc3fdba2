// Cases of pipelines that judges hold to closed forms and to published figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"

namespace bubblesim::validate {

/// Times for which a schedule has a closed form, and for how many of them idle times and peaks of
/// activations equal it exactly.
struct ClosedFormCases {
  std::uint32_t cases = 0;
  std::uint32_t equal = 0;
};

/// None of a request that the schedule's rule refuses.
[[nodiscard]] ClosedFormCases closed_form_cases(const std::string& schedule,
                                                const pipeline::ScheduleRequest& request,
                                                std::span<const pipeline::StageTimes> times);

/// Stages that are joined by edges, under the schedule "graph"; each part of a micro-batch takes 1.
[[nodiscard]] Result<std::int64_t> graph_makespan(
    std::uint32_t stages, std::uint32_t micro_batches,
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges);

/// An iteration of a training job alone, folded. `plan`: an object of configs/plans, which names
/// the software; the model and the cluster are files of `configs`.
[[nodiscard]] CheckedResult<double> iteration_seconds(const std::string& model,
                                                      const std::string& cluster,
                                                      const std::string& plan,
                                                      const std::string& configs);

}  // namespace bubblesim::validate
