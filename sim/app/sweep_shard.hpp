// The share of a sweep that this process does, and on how many threads: as the command line says,
// and Slurm's environment.
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/result.hpp"
#include "sim/sweep/plan.hpp"

namespace bubblesim::app {

/// "INDEX/COUNT", or "slurm": the place of this process among those of its job array, of its srun,
/// or of both. Fault: the text is neither; or mpirun or srun started several processes, each of
/// which would do the same runs.
[[nodiscard]] Result<sweep::Shard> shard_of_this_process(const std::string& text);

/// Threads for runs, where none are asked for: cores that this process may use; shared among the
/// processes of this host unless each is bound to some of its own.
[[nodiscard]] std::size_t usual_threads();

}  // namespace bubblesim::app
