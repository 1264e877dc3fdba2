// Values that make a reader show what it asks for next. Inside of sim/schema.
#pragma once

#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/read_recorder.hpp"

namespace bubblesim::schema {

/// Numbers and quantities are inside the range and not its least value, if there is another.
[[nodiscard]] std::vector<Json> probe_values(JsonCount count, const JsonShape& shape);

}  // namespace bubblesim::schema
