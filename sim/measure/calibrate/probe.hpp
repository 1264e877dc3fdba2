// What a probe is: runs of a rig, and what their records say of some of a device's constants.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "capture/rig/rig.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::measure {

/// What many measurements of one thing say: their median and quartiles.
struct Spread {
  std::size_t count = 0;
  double low = 0;     ///< first quartile
  double middle = 0;  ///< median
  double high = 0;    ///< third quartile
  friend bool operator==(const Spread&, const Spread&) = default;
};

[[nodiscard]] Spread spread_of(std::vector<double> values);

/// One run of a rig, with everything it needs.
struct ProbeRun {
  capture::RigSetup setup;
  policy::Sharing sharing;
  std::vector<policy::ClientSharing> shares;  ///< by client
};

/// A run of these plans; shares are those of whole clients.
[[nodiscard]] ProbeRun probe_run(policy::SharingMode mode, std::vector<capture::JobPlan> plans);

/// The probe's kernels, each once and alone: stand-ins are measured while nothing else is on the
/// GPU, and what they are is kept for the processes of the run itself.
[[nodiscard]] ProbeRun rehearsal(const ProbeRun& run);

/// What a probe found of one constant. Times are in nanoseconds, rates in bytes a second.
struct Finding {
  std::string key;      ///< of the device file
  Spread spread;
  std::string missing;  ///< why nothing was found, as half a sentence; empty: it was
};

/// Fewer measurements say nothing.
inline constexpr std::size_t kLeastCount = 8;

/// The finding of these values; too few of them, or too different ones, are none: the middle half
/// is wider than half of the median and than `grain`.
[[nodiscard]] Finding finding_of(std::string key, std::vector<double> values, double grain);

/// Spread of times, ns, that is nothing to doubt.
inline constexpr double kTimeGrain = 500;

/// A span that cannot be negative, of which the measurements' middle half has zero in it, or that
/// is negative by less than kTimeGrain: their median, or nothing. That is found, however wide.
[[nodiscard]] Finding at_least_zero(Finding finding);

/// Records of one rig's jobs, by client.
using Records = std::vector<capture::JobRecord>;

/// Nanoseconds.
[[nodiscard]] double length_of(const capture::OperationRecord& operation);

/// A job's operations by their starts.
[[nodiscard]] std::vector<capture::OperationRecord> by_start(const capture::JobRecord& record);

}  // namespace bubblesim::measure
