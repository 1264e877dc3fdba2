// Recorded steps as one file of bubblesim's own, JSON: `bubblesim import steps TRACE -o FILE`.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/step_cost/recorded_steps.hpp"

namespace bubblesim::step_cost {

/// Without the counters.
[[nodiscard]] Json steps_json(const RecordedSteps& steps);
[[nodiscard]] CheckedResult<RecordedSteps> read_steps_file(const std::string& path);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<RecordedSteps> parse_steps(std::string_view text, std::string label);

}  // namespace bubblesim::step_cost
