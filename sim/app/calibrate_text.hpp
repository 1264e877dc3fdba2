// What `bubblesim calibrate` prints: a table for people, JSON for programs.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/measure/calibrate/calibrated_file.hpp"

namespace bubblesim::app {

[[nodiscard]] std::string calibration_table(const measure::Calibration& calibration);

/// Times in nanoseconds, rates in bytes a second; `measured` null where the base's value stays.
[[nodiscard]] std::string calibration_json(const measure::Calibration& calibration,
                                           const measure::CalibrationOrigin& origin);

}  // namespace bubblesim::app
