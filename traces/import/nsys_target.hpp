// What an export says of the machine and the job: GPUs, streams, threads, processes, ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/import/nsys_nvtx.hpp"
#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

/// The GPU of every rank.
void describe_devices(NsysSession& session, RankSet& set);

/// Adds priorities of streams, names of threads, provenance. To be called after all records are
/// read.
void describe_ranks(NsysSession& session, RankSet& set);

/// The job's rank number for each rank of the set.
struct RankNumbers {
  std::vector<std::uint32_t> ranks;  ///< in the order of the set
  std::uint32_t world_size = 1;
  bool recorded = false;  ///< false: numbered by process and GPU
};

/// Finds ranks from MPI, else NCCL's communicators, else the environment. A source counts only if
/// it gives every rank of the set a number of its own.
[[nodiscard]] RankNumbers find_ranks(NsysSession& session, RankSet& set,
                                     const Communicators& communicators);

// The tables of CUDA activity: operations, synchronisation, calls, stalls, memory.

/// Kernels, copies, memsets and whole graphs.
void read_device_ops(NsysSession& session, RankSet& set);

/// Synchronisations and event records, as SyncRecords whose call is not known yet.
void read_syncs(NsysSession& session, RankSet& set);

/// Calls of the runtime and the driver. Operations and synchronisations come first: in a process
/// with several GPUs they say which call is whose.
void read_calls(NsysSession& session, RankSet& set);

/// Gives SyncRecords the kind and time of their calls. The kind that the table has is not used:
/// older exports number kinds otherwise than their own table of names does.
void complete_syncs(RankSet& set);

/// What CUPTI and Nsight Systems themselves did on the threads.
void read_stalls(NsysSession& session, RankSet& set);

/// Allocations of device memory, as running totals.
void read_memory(NsysSession& session, RankSet& set);

}  // namespace bubblesim::traces::nsys
