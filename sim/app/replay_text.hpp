// Replays as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/workload/replay.hpp"

namespace bubblesim::app {

struct ChangedReplay {
  std::string change;  ///< as given to --what-if
  workload::ReplayReport report;
  std::uint64_t spans_clamped = 0;  ///< of the host, which the change made longer than a step holds
};

struct ReplayComparison {
  workload::ReplayReport unchanged;  ///< the iterations used, repeated
  workload::ReplayReport whole;      ///< the whole recording, once
  std::size_t iterations_recorded = 0;
  std::size_t iterations_used = 0;
  std::string iterations_text;       ///< which, and why
  std::vector<ChangedReplay> changes;
  CounterSet counters;  ///< of building the programs
};

/// Whether no rank's iterations err by more than 1 % from the recorded ones, where there are some.
[[nodiscard]] bool meets_recording(const ReplayComparison& comparison);
[[nodiscard]] std::string replay_text(const ReplayComparison& comparison);
[[nodiscard]] std::string replay_json(const ReplayComparison& comparison);

}  // namespace bubblesim::app
