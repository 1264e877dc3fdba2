// A fleet's plan as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "sim/advise/fleet/fleet_plan.hpp"

namespace bubblesim::report {

/// Texts stand in it as data only: none can end a script or be markup.
[[nodiscard]] std::string fleet_page(const advise::FleetPlan& plan);

}  // namespace bubblesim::report
