// Measures a device's constants: all probes, one after the other, in the place of a rig.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/rig/rig.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/contention_fit.hpp"
#include "sim/measure/calibrate/probes.hpp"

namespace bubblesim::measure {

struct Probe {
  const char* name;
  const char* what;  ///< half a sentence
  RigSetup (*run)(const hardware::GpuSpec&);
  /// Null: calibrate() reads the records itself, since they yield more than constants.
  std::vector<Finding> (*find)(const Records&);
};
/// All probes, in the order in which they run.
[[nodiscard]] const std::vector<Probe>& probe_list();

enum class ConstantUnit : std::uint8_t {
  kNanoseconds,
  kBytesPerSecond,
  kSms,
  kPeakShare,  ///< measured
  kShare,  ///< or a ratio, fitted
  kOrder,  ///< hardware::ClientOrder: 1 arrival, 0 even
};

/// One constant of the device file.
struct CalibratedConstant {
  std::string key;           ///< "contention/" before those of contention
  ConstantUnit unit = ConstantUnit::kNanoseconds;
  double base = 0;
  double value = 0;          ///< the base's where it was not measured
  Spread spread;             ///< of contention: the value, and one standard error on either side
  std::string kept;          ///< why the base's value is kept; empty: it was measured
};

struct Calibration {
  hardware::GpuSpec spec;                   ///< the base with the measured values
  std::vector<CalibratedConstant> constants;  ///< of the probes that ran
  std::vector<SmShare> sm_shares;
  std::vector<ContentionCell> cells;
  std::optional<ContentionFit> contention;
  CounterSet counters;                      ///< of all rigs
  Duration length{};                        ///< of all runs, on the rig's clock
};

/// Runs the probes of these names; none: all. A constant that a probe cannot measure (its rig
/// cannot be set up, as without MPS; a process dies; measurements differ too much) keeps the base's
/// value, with the reason. `base` must have the device's SMs, which shape the probes. Faults: an
/// unknown probe; told to stop (RigPlace::stop).
[[nodiscard]] Result<Calibration> calibrate(const hardware::GpuSpec& base,
                                            const capture::RigPlace& place,
                                            const std::vector<std::string>& only);

// The device file of a calibration: the base's text with measured values. Other constants stay as
// they are, with their sources.

/// The origin of a calibration, for the sources of its constants.
struct CalibrationOrigin {
  std::string date;    ///< "2026-11-22"
  std::string device;  ///< as the driver names it
  std::string driver;  ///< empty: not known
  bool fake = false;   ///< the constants are a fake GPU's: the file says so
  std::optional<double> clock_before_mhz = std::nullopt;  ///< of the SMs; nothing: not known
  std::optional<double> clock_after_mhz = std::nullopt;
};

/// The value as a device file spells it: "1.261us", "2.9TB/s", 0.7312; for texts, shares without a
/// unit.
[[nodiscard]] std::string value_text(ConstantUnit unit, double value);

/// `recorded_names`: of the new file; nothing: the base's. Each name may be in only one file of a
/// folder. Fault: the base cannot be read.
[[nodiscard]] Result<std::string> calibrated_device_text(
    const std::string& base_path, const Calibration& calibration, const CalibrationOrigin& origin,
    const std::optional<std::vector<std::string>>& recorded_names);

/// The grid as CSV: a row for each cell, with the measured and the fitted value.
[[nodiscard]] std::string residuals_csv(const Calibration& calibration);

}  // namespace bubblesim::measure
