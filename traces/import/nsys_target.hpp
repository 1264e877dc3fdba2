// What an export says of the machine and the job: GPUs, streams, threads, processes, ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/nsys_nvtx.hpp"
#include "traces/import/nsys_ranks.hpp"
#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

/// The GPU of every rank.
void describe_devices(NsysSession& session, RankSet& set);

/// Adds priorities of streams, names of threads, provenance. To be called after all records are
/// read.
void describe_ranks(NsysSession& session, RankSet& set);

/// Which rank of the job each of the set is.
struct RankNumbers {
  std::vector<std::uint32_t> ranks;  ///< in the order of the set
  std::uint32_t world_size = 1;
  bool recorded = false;  ///< false: numbered by process and GPU
};

/// Finds ranks from MPI, else NCCL's communicators, else the environment; each only if it names all
/// ranks of the set, and no two alike.
[[nodiscard]] RankNumbers find_ranks(NsysSession& session, RankSet& set,
                                     const Communicators& communicators);

}  // namespace bubblesim::traces::nsys
