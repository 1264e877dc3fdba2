// A schedule with its times as text, JSON and a picture.
#pragma once

#include <string>

#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {

/// Most columns that render_grid draws; a longer schedule is shown in part.
inline constexpr std::size_t kMaxGridColumns = 2'000;

/// A row for each rank, a column for each unit of time (the greatest common divisor of all starts
/// and ends): "F3" where the action starts, "-" while it continues, "." idle. A rank with several
/// stages shows them: "2F3". Ends with a note if the end of the schedule is left out.
[[nodiscard]] std::string render_grid(const Schedule& schedule, const Execution& execution);

/// `{"format": "bubblesim.schedule/1", ...}`: the inputs of execute(), and every action with start
/// and end.
[[nodiscard]] std::string render_json(const Schedule& schedule, const StageGraph& graph,
                                      const UnitTimes& times, const Execution& execution);

/// A box for each action, coloured by kind, with its micro-batch if it fits; paler for a rank's
/// later stages. It has its own white background, for light and dark pages.
[[nodiscard]] std::string render_svg(const Schedule& schedule, const Execution& execution);

}  // namespace bubblesim::pipeline
