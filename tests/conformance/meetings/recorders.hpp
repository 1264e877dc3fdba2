// The recordings' kernels as Nsight Systems and bubblesim's own recorder write them.
//
// By NCCL's src/include/nvtx_payload_schemas.h and its profiler plug-in's interface: ranges and
// reports name the communicator by a hash that its ranks share, and a peer by its place in it.
#pragma once

#include <filesystem>

#include "tests/conformance/meetings/recording.hpp"

namespace bubblesim::run::testing {

enum class Nvtx { kNone, kRanges };  ///< NCCL's ranges beside its kernels, or none
/// A file a rank.
void write_nsight(const Recording& recording, Nvtx nvtx, const std::filesystem::path& folder);

/// What names collectives: NCCL's profiler plug-in or, where that is not heard, its ranges.
enum class Announced { kByProfiler, kByRanges };
/// One file of all ranks.
void write_own(const Recording& recording, Announced announced,
               const std::filesystem::path& folder);

}  // namespace bubblesim::run::testing
