// Runs independent tasks on several threads; results are in the order of tasks.
#pragma once

#include <cstddef>
#include <functional>

namespace bubblesim::run {

/// Calls task(0) ... task(count - 1), each once, at most `threads` at a time (0 counts as 1).
/// Returns when all are done. Tasks write no shared data and do not throw.
void for_each_parallel(std::size_t count, std::size_t threads,
                       const std::function<void(std::size_t)>& task);

}  // namespace bubblesim::run
