// NVTX ranges: markers, NCCL's announcements of collectives, NCCL's ranks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/import/nsys_ranks.hpp"
#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

/// A process's place in an NCCL communicator, by the payload of ncclCommInit*.
struct NvtxCommunicator {
  std::uint64_t id = 0;
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint32_t device = 0;  ///< CUDA's number of the GPU in its process
  bool has_device = false;
};

/// Communicators by process, each process's in the order of the table.
using Communicators = std::map<std::int64_t, std::vector<NvtxCommunicator>>;

/// Adds markers, and notes with their collectives. Calls come first: a range goes to the ranks
/// that its thread works for.
[[nodiscard]] Communicators read_nvtx(NsysSession& session, RankSet& set);

}  // namespace bubblesim::traces::nsys
