// What `bubblesim fill` says of a run.
#pragma once

#include <string>

#include "capture/live/run_fill.hpp"

namespace bubblesim::app {

[[nodiscard]] std::string fill_text(const capture::FillReport& report, const std::string& policy,
                                    const capture::LivePlan& plan);
/// One line.
[[nodiscard]] std::string fill_json(const capture::FillReport& report, const std::string& policy,
                                    const capture::LivePlan& plan);

}  // namespace bubblesim::app
