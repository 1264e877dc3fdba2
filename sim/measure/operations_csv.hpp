// What each operation of an arm's processes did on the device, as a CSV table: where an iteration
// that is longer than simulated loses its time.
#pragma once

#include <string>
#include <vector>

#include "capture/rig/rig.hpp"

namespace bubblesim::measure {

/// A row an operation and pass, by job and start. Instants are ns since the common start:
/// `called_ns` and `returned_ns` of the launch call behind the gate, `start_ns` and `end_ns` on the
/// device, `noticed_ns` when the process knew of the end. A job that died has no rows.
[[nodiscard]] std::string operations_csv(const std::vector<capture::RigJob>& jobs,
                                         const std::vector<capture::JobOutcome>& outcomes);

}  // namespace bubblesim::measure
