// A fleet's plan as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"

namespace bubblesim::report {

/// `plan`: what bubblesim.fleet prints as JSON, and its summary, a sentence.
[[nodiscard]] std::string fleet_page(const Json& plan);

}  // namespace bubblesim::report
