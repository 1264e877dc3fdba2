// A sweep's runs on the threads of this process: takes them, shows them, stores them, stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/sweep_display.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/store/results_store.hpp"
#include "sim/run/sweep/execute.hpp"

namespace bubblesim::app {

enum class SweepEnd : std::uint8_t {
  kAllDone,
  kStopped,  ///< by a signal; what was finished is stored
};

/// Runs `runs` and adds their records to `store`. A first Ctrl-C or SIGTERM lets the runs in flight
/// end; a second ends the process with 130 as soon as what is finished is stored. Fault: the
/// store's; no further run is begun then.
[[nodiscard]] Result<SweepEnd> run_sweep_here(const std::vector<run::PlannedRun>& runs,
                                              const policy::Registry& registry,
                                              const run::ExecuteOptions& options,
                                              run::ResultsStore& store, SweepDisplay& display);

}  // namespace bubblesim::app
