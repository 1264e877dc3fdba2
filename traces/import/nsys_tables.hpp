// The tables of CUDA activity: operations, synchronisation, calls, stalls, memory.
#pragma once

#include "traces/import/nsys_ranks.hpp"
#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

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
