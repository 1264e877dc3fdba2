// The runs of a plan that a store lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/store/planned_run.hpp"
#include "sim/store/results_store.hpp"
#include "sim/sweep/best_run.hpp"

namespace bubblesim::sweep {

enum class FailedRuns : std::uint8_t {
  kKeep,   ///< the same inputs fail the same way
  kRetry,
};

struct RemainingRuns {
  std::vector<store::PlannedRun> runs;   ///< to be done, in the order of the plan
  std::size_t done = 0;           ///< of the plan, in the store
  std::size_t failed = 0;         ///< of the plan, in the store as failed, and kept
  Duration cpu{};                 ///< of finished runs of the sweep, all together
  std::size_t timed = 0;          ///< the number of these runs
};

/// `best` sees the store's rows of the sweep and plan, with those that another sweep stored once
/// the plan has joined (ResultsStore::join). Fault: the store's.
[[nodiscard]] Result<RemainingRuns> remaining_runs(const std::vector<store::PlannedRun>& plan,
                                                   const std::string& sweep,
                                                   store::ResultsStore& store, FailedRuns failed,
                                                   BestSoFar& best);

}  // namespace bubblesim::sweep
