// Recorded steps as one file of bubblesim's own, JSON: `python3 -m bubblesim.steps TRACE -o FILE`.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.hpp"
#include "sim/step_cost/recorded_steps.hpp"

namespace bubblesim::step_cost {

[[nodiscard]] CheckedResult<RecordedSteps> read_steps_file(const std::string& path);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<RecordedSteps> parse_steps(std::string_view text, std::string label);

}  // namespace bubblesim::step_cost
