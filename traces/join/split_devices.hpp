// A process that ran kernels on several GPUs, as one rank a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// The ranks by device, with the records that are of it; the counters stay with the first. A GPU
/// without kernels, or with under 1 % of the operations, is no rank: what it did stays with the
/// main one, that of most operations, and is counted. Calls are of the GPU of what they launched,
/// of `call_devices`, of the stream that they name, of what they waited for, else of what their
/// thread used last (counted). Markers, names and clocks are copied. Operations of `process` are
/// final: sorted, launches linked. `call_devices`: by call, the GPU's number plus 1, 0: not known;
/// empty: none is.
[[nodiscard]] std::vector<RankTrace> split_by_device(
    RankTrace process, std::span<const std::uint32_t> call_devices = {});

/// The device that most operations of a rank ran on.
[[nodiscard]] std::uint32_t main_device(const RankTrace& rank);

}  // namespace bubblesim::traces
