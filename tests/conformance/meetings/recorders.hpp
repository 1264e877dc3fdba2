// The recordings' kernels as Nsight Systems and bubblesim's own recorder write them.
//
// Source: NCCL's src/include/nvtx_payload_schemas.h and its profiler plug-in's interface. Ranges
// and reports name a communicator by a hash that its ranks share, and a peer by its rank in it.
#pragma once

#include <filesystem>

#include "tests/conformance/meetings/recording.hpp"

namespace bubblesim::run::testing {

enum class Nvtx { kNone, kRanges };  ///< NCCL's ranges beside its kernels, or none
/// Writes one file a rank.
void write_nsight(const Recording& recording, Nvtx nvtx, const std::filesystem::path& folder);

/// Which NCCL interface names the collectives: its profiler plug-in or, without one, its ranges.
enum class Announced { kByProfiler, kByRanges };
/// Writes one file for all ranks.
void write_own(const Recording& recording, Announced announced,
               const std::filesystem::path& folder);

}  // namespace bubblesim::run::testing
