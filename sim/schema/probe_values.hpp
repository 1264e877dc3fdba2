// Values that make a reader show what it asks for next. Inside of sim/schema.
#pragma once

#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/read_recorder.hpp"

namespace bubblesim::schema {

/// Of numbers and quantities one inside the range that is not its least, if there is one.
[[nodiscard]] std::vector<Json> probe_values(JsonCount count, const JsonShape& shape);

}  // namespace bubblesim::schema
