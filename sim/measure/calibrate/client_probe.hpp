// What passing from one process's kernel to another's costs under MPS.
#pragma once

#include <vector>

#include "sim/measure/calibrate/probe.hpp"

namespace bubblesim::measure {

/// Two clients of an MPS server, each with an endless row of kernels that fill the GPU, so that
/// they take turns kernel by kernel; the second comes later: till then the first is alone.
[[nodiscard]] ProbeRun client_run(const hardware::GpuSpec& spec);

/// client_switch: from a kernel's end to the next end, where the kernels are different clients',
/// less a kernel's duration alone. A row of one client has its stream gap there instead, which the
/// other client's kernels hide.
[[nodiscard]] std::vector<Finding> client_findings(const Records& records);

}  // namespace bubblesim::measure
