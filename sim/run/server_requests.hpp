// The requests of a language-model server in a run: lengths from the config, from a file of
// requests, or from the file of arrivals.
#pragma once

#include <optional>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/run/run_config.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::run {

/// The requests of a server.
struct RequestsRead {
  workload::RequestLengths lengths;
  /// Arrivals from a file that also has the lengths. The file is read once, so the n-th length
  /// belongs to the n-th arrival even if lines are damaged; its lengths have moved to `lengths`.
  /// Nothing: arrivals and lengths have different sources.
  std::optional<workload::RecordedArrivals> arrivals{};
  CounterSet counters{};  ///< of reading a file of lengths alone; `arrivals` has its own
};

/// Reads what the filler names. Faults: a file that cannot be read, and the first of the requests
/// that the settings could never serve. Precondition: its program is an engine's.
[[nodiscard]] Result<RequestsRead> server_requests(const FillerConfig& filler,
                                                   const serving::SchedulerSpec& spec);

}  // namespace bubblesim::run
