// What a sweep will take, measured on one of its runs.
#pragma once

#include <string>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/sweep/execute.hpp"

namespace bubblesim::run {

struct RunCost {
  Duration load{};      ///< to read and build what runs share
  Duration run{};       ///< one run after that
  Bytes shared;         ///< the process with what is shared
  Bytes each;           ///< a run takes on top of it, at most
  std::string failure;  ///< why the run failed; empty: it did not
};

/// Runs it once, and keeps nothing. Memory is what Linux says of the process (0: it says nothing),
/// and only right where nothing else runs in it.
[[nodiscard]] RunCost measure_run(const PlannedRun& run, const policy::Registry& registry,
                                  const ExecuteOptions& options);

/// Most memory that the process has held at once; 0: not known.
[[nodiscard]] Bytes peak_memory();

}  // namespace bubblesim::run
