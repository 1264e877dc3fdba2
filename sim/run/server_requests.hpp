// What the server of a language-model engine is asked in a run: lengths from the config, from a
// file of requests, or from the file of arrivals.
#pragma once

#include "sim/base/result.hpp"
#include "sim/run/run_config.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::run {

/// Reads what the filler names. Faults: a file that cannot be read, and the first of the requests
/// that the settings could never serve. Precondition: its program is an engine's.
[[nodiscard]] Result<workload::RequestLengths> server_requests(const FillerConfig& filler,
                                                               const serving::SchedulerSpec& spec);

}  // namespace bubblesim::run
