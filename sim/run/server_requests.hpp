// What the server of a language-model engine is asked in a run: lengths from the config, from a
// file of requests, or from the file of arrivals.
#pragma once

#include <optional>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/run/run_config.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::run {

/// What a server is asked.
struct RequestsRead {
  workload::RequestLengths lengths;
  /// When the requests arrive, where one file says that and how long they are: it is read once, so
  /// that the n-th length is that of the n-th arrival whatever lines are damaged. Its own lengths
  /// have moved to `lengths`. Nothing: arrivals and lengths have different sources.
  std::optional<workload::RecordedArrivals> arrivals{};
  CounterSet counters{};  ///< of reading a file of lengths alone; `arrivals` has its own
};

/// Reads what the filler names. Faults: a file that cannot be read, and the first of the requests
/// that the settings could never serve. Precondition: its program is an engine's.
[[nodiscard]] Result<RequestsRead> server_requests(const FillerConfig& filler,
                                                   const serving::SchedulerSpec& spec);

}  // namespace bubblesim::run
