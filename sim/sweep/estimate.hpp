// What a sweep will take, measured on some of its runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/sweep/execute.hpp"

namespace bubblesim::sweep {

struct RunCost {
  std::size_t runs = 0;  ///< that were measured
  Duration load{};       ///< to read and build what the first run shares with others
  Duration run{};        ///< mean, without loading, with its part of what runs simulate once
  Bytes shared;          ///< the process with what is shared
  Bytes run_bytes;       ///< a run takes on top of it, at most
  std::string failure;   ///< why the first one that failed did; empty: none did
};

/// Does runs from all over the plan, the first one for sure and more while less than `budget` has
/// passed, 8 at most; keeps nothing. Memory is what Linux says of the process (0: it says nothing),
/// and only right where nothing else runs in it. Precondition: there is a run.
[[nodiscard]] RunCost measure_runs(const std::vector<store::PlannedRun>& plan,
                                   const policy::Registry& registry,
                                   const ExecuteOptions& options, Duration budget);

/// Most memory that the process has held at once; 0: not known.
[[nodiscard]] Bytes peak_memory();

}  // namespace bubblesim::sweep
