// Reads an export's data on the machine and the job: GPUs, streams, threads, processes, ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/import/nsys_nvtx.hpp"
#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

/// Reads the GPU of every rank.
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

/// Finds ranks from MPI, else NCCL's communicators, else the environment. A source is used only if
/// it gives every rank of the set a distinct number.
[[nodiscard]] RankNumbers find_ranks(NsysSession& session, RankSet& set,
                                     const Communicators& communicators);

// Reads the tables of CUDA activity: operations, synchronisation, calls, stalls, memory.

/// Reads kernels, copies, memsets and whole graphs.
void read_device_ops(NsysSession& session, RankSet& set);

/// Reads synchronisations and event records, as SyncRecords without their calls.
void read_syncs(NsysSession& session, RankSet& set);

/// Reads calls of the runtime and the driver. Read operations and synchronisations first: in a
/// process with several GPUs they tell each call's rank.
void read_calls(NsysSession& session, RankSet& set);

/// Gives SyncRecords the kind and time of their calls. The table's own kind is not used: older
/// exports number kinds otherwise than their table of names.
void complete_syncs(RankSet& set);

/// Reads the activity of CUPTI and Nsight Systems themselves on the threads.
void read_stalls(NsysSession& session, RankSet& set);

/// Reads allocations of device memory, as running totals.
void read_memory(NsysSession& session, RankSet& set);

}  // namespace bubblesim::traces::nsys
