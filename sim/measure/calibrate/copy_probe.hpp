// Bandwidths, by copies of two sizes: what the longer one takes more is what its bytes take.
#pragma once

#include <vector>

#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

/// A pass: each path (to the device, to the host, within the device), short and long.
[[nodiscard]] ProbeRun copy_run(const hardware::GpuSpec& spec);

/// host_bandwidth: of both directions together, pinned memory, one copy at a time.
/// dram_bandwidth: twice the bytes of a copy within the device, which are read and written. What
/// copies reach, some tenths below the interface's peak on real devices.
[[nodiscard]] std::vector<Finding> copy_findings(const Records& records);

}  // namespace bubblesim::measure
