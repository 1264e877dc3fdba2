// A device's constants, measured: all probes, one after the other, in the place of a rig.
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
  ProbeRun (*run)(const hardware::GpuSpec&);
  /// Null: its records say more than constants.
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
  std::string kept;          ///< why it is the base's; empty: it was measured
};

struct Calibration {
  hardware::GpuSpec spec;                   ///< the base with what was measured
  std::vector<CalibratedConstant> constants;  ///< those whose probes ran
  std::vector<SmShare> sm_shares;
  std::vector<ContentionCell> cells;
  std::optional<ContentionFit> contention;
  CounterSet counters;                      ///< of all rigs
  Duration length{};                        ///< of all runs, on the rig's clock
};

/// Runs the probes of these names; none: all. What a probe cannot see, for its rig cannot be set up
/// (no MPS), for a process dies, or for its measurements differ too much, keeps the base's value
/// and says why. `base` must be the device in its SMs, which shape the probes. Faults: an unknown
/// probe; told to stop (RigPlace::stop).
[[nodiscard]] Result<Calibration> calibrate(const hardware::GpuSpec& base,
                                            const capture::RigPlace& place,
                                            const std::vector<std::string>& only);

}  // namespace bubblesim::measure
