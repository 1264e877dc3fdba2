// An inspection for people: aligned columns, units, percentages; at most 100 columns.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Shares are of each rank's representative window: steady where iterations are marked.
/// Ends with a newline.
[[nodiscard]] std::string render_text(const JobInspection& job);

// What a job's iteration time depends on, for people and as JSON: a section of an inspection.

/// Shares in the representative window, over all ranks.
[[nodiscard]] DeviceShares device_shares(const JobInspection& job);

/// A table, a reason for each that is near zero, and the cause of the bubbles that they confirm.
/// Empty where the job has no sensitivities. At most 100 columns but for the cause.
[[nodiscard]] std::string sensitivities_text(const JobInspection& job);

/// {iteration_ns, kernels, copies, link, host, rest, bottleneck, near_zero: {name: reason},
/// main_cause, main_cause_fraction, confirmed_cause}. Precondition: the job has sensitivities.
[[nodiscard]] Json sensitivities_json(const JobInspection& job);

}  // namespace bubblesim::traces
