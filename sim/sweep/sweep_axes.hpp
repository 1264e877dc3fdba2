// The values of a sweep's axes: lists, ranges, samples. Inside of sim/sweep.
//
// Ends of ranges are numbers, or spans and sizes with their units ("1ms", "2GB"). Values are
// rounded: numbers to 12 significant digits, so that 0.1 + 0.2 is 0.3; spans to nanoseconds, sizes
// to bytes; with "integers", to distinct whole numbers.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::sweep {

inline constexpr std::size_t kMostValues = 1'000'000;  ///< of an axis

/// One of "values", "range" and "log_range". After a fault, no values.
[[nodiscard]] SweepAxis read_axis(ObjectReader& axis);
/// As read_axis(), for callers that have already declared these keys as one_of().
[[nodiscard]] SweepAxis read_axis_form(ObjectReader& axis);

/// "sample": axes of `count` values each. Random: independent draws. Latin hypercube: one draw from
/// each of `count` equal parts of an axis, in a separate random order for each axis.
[[nodiscard]] std::vector<SweepAxis> read_sample(ObjectReader sample);

}  // namespace bubblesim::sweep
