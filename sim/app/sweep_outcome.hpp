// What a sweep says when it ends, and its exit code.
#pragma once

#include <cstddef>
#include <string>

#include "sim/app/sweep_display.hpp"
#include "sim/app/sweep_local.hpp"
#include "sim/sweep/best_run.hpp"

namespace bubblesim::app {

/// How far the whole sweep is, and what this start did.
struct SweepOutcome {
  std::string sweep;
  std::string store;
  SweepEnd end = SweepEnd::kAllDone;
  SweepCounts counts;
  std::size_t failed_before = 0;
  std::size_t left = 0;  ///< beyond --limit or after a stop
  double in_runs = 1;    ///< share of the threads' time
  double seconds = 0;
  bool untrusted = false;  ///< a result has a counter of severity error
};

void print_outcome(const SweepOutcome& outcome, const sweep::BestSoFar& best, SweepOutput output);

[[nodiscard]] int exit_code(const SweepOutcome& outcome);

}  // namespace bubblesim::app
