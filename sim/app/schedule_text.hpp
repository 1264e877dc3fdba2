// What `bubblesim schedule` prints, and its small languages: times and stage edges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/pipeline/closed_form.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/pipeline/stage_graph.hpp"

namespace bubblesim::app {

/// "F=10,I=12,W=8,p2p=1": whole numbers in any one unit; also B and FB (an overlapped pair).
/// What is not named is 1, p2p 0, B = I+W, FB = F+B. A name given twice is a fault.
[[nodiscard]] Result<pipeline::UnitTimes> parse_unit_times(const std::string& text);

/// A line for B and for FB where they are given and the schedule has no such action.
[[nodiscard]] std::string unused_times_text(const pipeline::UnitTimes& times,
                                            const pipeline::Schedule& schedule);

/// "0-1,0-2,1-3,2-3".
[[nodiscard]] Result<std::vector<pipeline::StageEdge>> parse_edges(const std::string& text);

/// "1,1,2".
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_sizes(const std::string& text);

/// Table, both bubbles, closed form if there is one, peaks by rank.
[[nodiscard]] std::string schedule_text(const pipeline::Schedule& schedule,
                                        const pipeline::UnitTimes& times,
                                        const pipeline::Execution& execution,
                                        const std::optional<pipeline::ClosedForm>& form);

}  // namespace bubblesim::app
