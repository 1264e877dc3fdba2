// What is known in closed form of a schedule: idle time a rank, and the peak of activations. For
// judging: nothing in the simulator uses these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {

enum class BubbleMeasure : std::uint8_t {
  kSpan,      ///< Execution::span_bubble()
  kMakespan,  ///< Execution::idle of every rank
};

struct ClosedForm {
  BubbleMeasure measure = BubbleMeasure::kMakespan;
  std::int64_t bubble = 0;  ///< in the unit of the times
  std::string formula;      ///< with p, m, v, and F, I, W, B = I + W of one stage
  std::string source;
  std::vector<std::int64_t> peaks;  ///< by rank, in ActivationUnits
};

/// None where there is no such form: transfers that take time, stages that differ, a graph, times
/// outside of what the formula was made for (found by search over small times, see the tests).
[[nodiscard]] std::optional<ClosedForm> closed_form(std::string_view name,
                                                    const ScheduleRequest& request,
                                                    const UnitTimes& times,
                                                    const ActivationUnits& units = {});

}  // namespace bubblesim::pipeline
