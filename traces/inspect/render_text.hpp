// An inspection as text for people: aligned columns, units, percentages; at most 100 columns.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Shares are of each rank's representative window (RankInspection::representative).
/// Ends with a newline.
[[nodiscard]] std::string render_text(const JobInspection& job);

// The sensitivities of a job's iteration time, for people and as JSON: a section of an inspection.

/// Shares in the representative window, over all ranks.
[[nodiscard]] DeviceShares device_shares(const JobInspection& job);

/// A table of sensitivities, with a reason for each that is near zero, and the cause of bubbles
/// that they confirm. Empty if the job has no sensitivities. At most 100 columns, except for the
/// cause.
[[nodiscard]] std::string sensitivities_text(const JobInspection& job);

/// {iteration_ns, kernels, copies, link, host, rest, fixed, bottleneck, near_zero: {name: reason},
/// main_cause, main_cause_fraction, confirmed_cause}. Precondition: the job has sensitivities.
[[nodiscard]] Json sensitivities_json(const JobInspection& job);

// An inspection as JSON: every number at full precision, nanoseconds as integers with `_ns` in
// the key, shares as fractions of 1; unknown values are null. Format: "bubblesim.inspect/1".
//
// thresholds; job {ranks, steady_ranks, iterations_recorded, iterations_used, iterations_reason,
// iteration_mean_ns, bubble_fraction (of the iterations used), whole, representative, operations,
// counters, sensitivities (where the job was replayed)}; ranks[] {rank, world_size, source, format,
// device, window, whole, steady_window, steady, iterations, operations, memory, counters,
// explanation (where a program was made)}. Job sums add ranks up.
//
// whole, steady: length_ns, busy_ns, own_ns, idle_ns, bubble_ns, communication_ns, overlapped_ns,
// exposed_communication_ns, *_fraction of the window (overlapped_fraction: of the communication),
// sm_cover, bubbles, longest_bubble_ns, gaps, gaps_100us, gaps_1ms, bubble_by_cause,
// bubble_by_length[] {from_ns, below_ns, bubbles, total_ns, by_cause}.
// sensitivities: iteration_ns, kernels, copies, link, host, rest, fixed, near_zero {name:
// reason}, bottleneck, main_cause, main_cause_fraction, confirmed_cause. explanation: window_ns,
// unexplained_ns, unexplained_fraction, starts {what held them: count}, waits {kind: {count,
// unexplained_ns}}.

/// Two spaces for each indent, a newline at the end; the same inspection gives the same bytes.
/// Bytes of names that are not UTF-8 are replaced by U+FFFD.
[[nodiscard]] std::string render_json(const JobInspection& job);

}  // namespace bubblesim::traces
