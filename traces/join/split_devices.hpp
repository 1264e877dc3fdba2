// Splits a process that ran kernels on several GPUs into one rank for each GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// One rank for each GPU, in order, with its records; the first keeps the counters. A GPU without
/// kernels, or with under 1 % of the operations, gives no rank: its records stay with the main GPU,
/// which has most operations, and are counted. A call belongs to the first known of these GPUs:
/// that of the operation it launched, that of `call_devices`, that of its stream, that of the
/// operation it waited for, the one that its thread used last (counted). Markers, names and clocks
/// are copied. Operations of `process` are final: sorted, launches linked. `call_devices` has for
/// each call the GPU's number plus 1, or 0 if not known; empty: no call's GPU is known.
[[nodiscard]] std::vector<RankTrace> split_by_device(
    RankTrace process, std::span<const std::uint32_t> call_devices = {});

/// The device that most operations of a rank ran on.
[[nodiscard]] std::uint32_t main_device(const RankTrace& rank);

}  // namespace bubblesim::traces
