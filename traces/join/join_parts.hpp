// The steps of join_recording that have files of their own, in their order. Records are sorted
// before all steps; operations are tied to their launches before the last two.
#pragma once

#include "sim/base/counters.hpp"
#include "traces/join/call_index.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Restores times as if no clock had been set forward during the recording.
void undo_clock_steps(RankTrace& trace);

/// Drops the operations by which stand-ins of collectives fill their outputs.
void drop_stand_in_fills(RankTrace& trace);

/// Gives the calls the streams and events of `trace.syncs` and adds the edges of stream waits.
/// Returns, for each call, CUDA's number of its context's GPU, plus 1; 0: not recorded.
[[nodiscard]] std::vector<std::uint32_t> join_syncs(const CallIndex& index, RankTrace& trace);

/// Makes collectives from communication kernels and adds the announcements in `trace.notes`.
void join_collectives(RankTrace& trace);

/// Drops the few operations that start over 200 us before their launch, or end over 200 us after
/// the return of a call that waited for them. Launches, streams of calls and edges are known.
void drop_impossible_ops(RankTrace& trace);

}  // namespace bubblesim::traces

namespace bubblesim::traces::join {

// Counters of joining a recording.

inline constexpr CounterSpec kClockSteps{"join_clock_steps_undone", Severity::kNotice,
    "times that the clock was set forward during the recording, and undone; what was recorded "
    "within a twentieth of a second of a shorter step may be off by it"};
inline constexpr CounterSpec kClockSetBack{"join_clock_set_back", Severity::kLoss,
    "times that the clock was set back during the recording: records of before and after are "
    "mixed"};
inline constexpr CounterSpec kOrphanOps{"join_device_ops_without_launch", Severity::kNotice,
    "device operations whose launch is not in the recording: before it began, or not recorded"};
inline constexpr CounterSpec kIdleLaunches{"join_launches_without_device_op", Severity::kNotice,
    "launches, copies and memsets with no device operation: after the end, or lost"};
inline constexpr CounterSpec kEarlyOps{"join_device_ops_before_launch", Severity::kNotice,
    "device operations that start before their launch call: host and device clocks disagree"};
inline constexpr CounterSpec kImpossibleStarts{"join_device_ops_before_launch_dropped",
    Severity::kLoss,
    "device operations that start over 200 us before their launch, where most do not: their times "
    "are not true"};
inline constexpr CounterSpec kImpossibleEnds{"join_device_ops_after_wait_dropped", Severity::kLoss,
    "device operations that end over 200 us after a call that waited for them has returned, where "
    "most do not: their times are not true"};
inline constexpr CounterSpec kGraphOps{"join_device_ops_of_graphs", Severity::kInfo,
    "device operations that share a launch with others: CUDA graphs"};
inline constexpr CounterSpec kNestedCalls{"join_nested_calls_merged", Severity::kInfo,
    "driver calls within the runtime call that made them; one call is kept"};
inline constexpr CounterSpec kRenumbered{"join_correlations_renumbered", Severity::kNotice,
    "calls whose correlation another call has too; they got new ones"};
inline constexpr CounterSpec kOtherDevices{"join_ops_on_further_devices", Severity::kNotice,
    "device operations on another device than most; their streams are kept apart"};
inline constexpr CounterSpec kGpusNumbered{"join_ranks_of_gpus_by_order", Severity::kNotice,
    "GPUs of one process whose ranks no communicator names: numbered by their order, as if every "
    "process of the job had as many"};
inline constexpr CounterSpec kCallsGiven{"join_calls_given_by_thread", Severity::kNotice,
    "calls of a process with several GPUs that name none; given to the GPU whose work they waited "
    "for, else to the one that their thread used last"};
inline constexpr CounterSpec kMemoryGiven{"join_memory_samples_given", Severity::kNotice,
    "samples of the memory of a process with several GPUs, which name none here; given to the GPU "
    "that ran most operations"};
inline constexpr CounterSpec kWaitsBetween{"join_waits_between_gpus_dropped", Severity::kLoss,
    "waits of a stream for a stream of another GPU of its process: what one GPU does later moves "
    "nothing on the other"};
inline constexpr CounterSpec kSyncsWithoutCall{"join_syncs_without_call", Severity::kNotice,
    "event records, waits and synchronisations whose call is not in the recording"};
inline constexpr CounterSpec kWaitsWithoutRecord{"join_stream_waits_without_record",
    Severity::kInfo, "stream waits for an event recorded before the recording began"};
inline constexpr CounterSpec kWaitsWithoutEdge{"join_stream_waits_without_edge", Severity::kInfo,
    "stream waits with no operation before or after them in the recording"};
inline constexpr CounterSpec kNotesUnmatched{"join_collective_notes_unmatched", Severity::kNotice,
    "announced collectives without a kernel: captured into a graph, on one rank alone, or lost"};
inline constexpr CounterSpec kNotesElsewhere{"join_collectives_of_other_threads",
    Severity::kNotice,
    "collectives launched by a thread that announces none: communicators that do not block; "
    "matched by communicator and time"};
inline constexpr CounterSpec kNotesGrouped{"join_collective_notes_grouped", Severity::kNotice,
    "announced collectives that share a kernel with another; their bytes are added to its"};
inline constexpr CounterSpec kCollectivesWithoutNote{"join_collectives_without_note",
    Severity::kNotice,
    "communication kernels that nothing announced: their kind is by name, group and bytes unknown"};
inline constexpr CounterSpec kCollectivesUnknown{"join_collectives_of_unknown_kind",
    Severity::kNotice, "communication kernels whose name does not say what they do"};
inline constexpr CounterSpec kSequenceByOrder{"join_collective_sequences_by_order",
    Severity::kNotice, "collectives numbered by their order of start in their group"};
inline constexpr CounterSpec kNotesByNvtx{"join_collectives_from_nvtx", Severity::kInfo,
    "collectives known from NCCL's NVTX ranges: bytes as NCCL counts them"};
inline constexpr CounterSpec kKindsFromRanges{"join_collective_kinds_from_ranges",
    Severity::kNotice, "kinds read from PyTorch's range nccl:... around the launch"};
inline constexpr CounterSpec kFillsDropped{"join_stand_in_fills_dropped", Severity::kNotice,
    "device operations by which stand-ins of collectives gave their outputs values; the job that "
    "they stand in for has none"};
inline constexpr CounterSpec kStandIns{"join_collectives_stood_in", Severity::kNotice,
    "collectives that a stand-in took the place of: their recorded time is not a network's"};

}  // namespace bubblesim::traces::join
