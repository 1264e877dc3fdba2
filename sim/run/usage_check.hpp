// How finely usage over time may be cut: so that what a run records of it stays within a limit.
#pragma once

#include <optional>

#include "sim/base/result.hpp"
#include "sim/observe/usage_series.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// What is recorded of each of the run's policies; the limit of a report is shared evenly by its
/// GPUs. An interval of 0 records nothing.
[[nodiscard]] observe::UsageSetup usage_setup(const LoadedRun& loaded, Duration interval);

/// Fault: in a run of `length` the limit would leave intervals out. The message has the shortest
/// interval for which it does not.
[[nodiscard]] Result<void> check_usage(const LoadedRun& loaded, Duration interval,
                                       Duration length);

}  // namespace bubblesim::run
