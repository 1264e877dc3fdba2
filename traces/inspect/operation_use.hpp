// Kernel, collective, copy and memory tables; a part of inspect_rank and inspect_job.
#pragma once

#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Sums over all of the rank's operations; no list is cut.
[[nodiscard]] OperationUse operation_use(const RankTrace& rank);

/// Adds `other` to `sums` by name, kind and direction, and sorts.
void merge_operations(OperationUse& sums, const OperationUse& other);

/// Keeps the first `count` kernels; 0 keeps all.
void cut_kernels(OperationUse& sums, std::size_t count);

[[nodiscard]] MemoryUse memory_use(const RankTrace& rank);

}  // namespace bubblesim::traces
