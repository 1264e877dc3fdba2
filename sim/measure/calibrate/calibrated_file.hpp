// The device file of a calibration: the base's text with what was measured in it. What was not
// measured stays as it is, with its source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/measure/calibrate/calibrate.hpp"

namespace bubblesim::measure {

/// The origin of a calibration, for the sources of its constants.
struct CalibrationOrigin {
  std::string date;    ///< "2026-11-22"
  std::string device;  ///< as the driver names it
  std::string driver;  ///< empty: not known
  bool fake = false;   ///< the constants are a fake GPU's: the file says so
  std::optional<double> clock_before_mhz = std::nullopt;  ///< of the SMs; nothing: not known
  std::optional<double> clock_after_mhz = std::nullopt;
};

/// "measured: bubblesim calibrate, 2026-11-22, NVIDIA H100 80GB HBM3, driver 580.1, n=120,
/// quartiles 1.25us to 1.27us".
[[nodiscard]] std::string source_of(const CalibratedConstant& constant,
                                    const CalibrationOrigin& origin);

/// The value as a device file spells it: "1.261us", "2.9TB/s", 0.7312; for texts, shares without a
/// unit.
[[nodiscard]] std::string value_text(ConstantUnit unit, double value);

/// `recorded_names`: those of the file; nothing: the base's. A name may be in one file of a folder
/// only. Fault: the base cannot be read.
[[nodiscard]] Result<std::string> calibrated_device_text(
    const std::string& base_path, const Calibration& calibration, const CalibrationOrigin& origin,
    const std::optional<std::vector<std::string>>& recorded_names);

/// The grid as CSV: one row a cell, with what was measured and what the fit gives.
[[nodiscard]] std::string residuals_csv(const Calibration& calibration);

}  // namespace bubblesim::measure
