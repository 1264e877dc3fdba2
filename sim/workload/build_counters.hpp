// Counters of data that building a program had to infer, clamp or leave out.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::workload {

inline constexpr CounterSpec kOrphanOps{
    "program_ops_without_launch", Severity::kNotice,
    "device operations whose launch was not recorded; taken as launched right after the operation "
    "before them on their stream"};
inline constexpr CounterSpec kLaunchesWithoutOp{
    "program_launches_without_op", Severity::kInfo,
    "launch calls without a recorded device operation; kept as host time only"};
inline constexpr CounterSpec kInferredEdges{
    "program_edges_inferred", Severity::kNotice,
    "cross-stream dependencies inferred from event calls whose streams were not recorded, or from "
    "operations that start as another stream's ends"};
inline constexpr CounterSpec kUnknownStreamWaits{
    "program_stream_waits_unknown", Severity::kNotice,
    "cudaStreamWaitEvent calls without recorded stream after which their thread launched on "
    "several: the first is taken to wait, though nothing shows that it did, and the time of what "
    "it waits for is unexplained"};
inline constexpr CounterSpec kEdgesFromOutside{
    "program_edges_from_outside", Severity::kNotice,
    "cross-stream dependencies on operations that are not in the window and have no counterpart "
    "there; left out"};
inline constexpr CounterSpec kDefaultStreamEdges{
    "program_edges_of_default_stream", Severity::kInfo,
    "dependencies between the legacy default stream and streams that block with it"};
inline constexpr CounterSpec kInferredWaits{
    "program_waits_inferred", Severity::kInfo,
    "synchronising calls whose stream or event was inferred from what ended before they returned"};
inline constexpr CounterSpec kWaitsForNothing{
    "program_waits_for_empty_streams", Severity::kNotice,
    "synchronising calls whose stream ran no operation in the window; kept as host time only"};
inline constexpr CounterSpec kInferredQueueWaits{
    "program_queue_waits_inferred", Severity::kNotice,
    "launch calls far longer than usual while about a thousand operations were pending; taken as "
    "held by a full launch queue until an operation ended"};
inline constexpr CounterSpec kInferredHandOvers{
    "program_hand_overs_inferred", Severity::kInfo,
    "pauses of a host thread that end after another thread's call, taken as waiting for it"};
inline constexpr CounterSpec kTrimmedOverlaps{
    "program_overlaps_trimmed", Severity::kNotice,
    "operations recorded as overlapping their predecessor on the same stream; shortened to follow"};
inline constexpr CounterSpec kUnexplainedDelays{
    "program_delays_unexplained", Severity::kNotice,
    "operations that started over 20 us after everything known to hold them; kept as a lag"};
inline constexpr CounterSpec kTimeUnexplained{
    "program_time_unexplained", Severity::kLoss,
    "ranks where nothing recorded explains over 1 % of the time: what starts or waits were held by "
    "then is not known, and changes to it do not move them (inspect has a table)"};
inline constexpr CounterSpec kDoubtful{
    "program_what_ifs_doubtful", Severity::kLoss,
    "ranks where that is over 10 % of the time: what-ifs, and what policies do to this job, are "
    "doubtful"};
inline constexpr CounterSpec kClampedSpans{
    "program_spans_clamped", Severity::kLoss, "delays over 4.29 s, shortened to that"};
inline constexpr CounterSpec kBackwardTimes{
    "program_backward_times", Severity::kNotice,
    "operations recorded as starting before their launch; taken as starting with it"};
inline constexpr CounterSpec kNotJoined{
    "program_collectives_not_joined", Severity::kLoss,
    "collectives whose counterpart on other ranks was not found: they keep their recorded time, "
    "waiting included, whatever becomes of other ranks"};
inline constexpr CounterSpec kAlone{
    "program_collectives_of_other_ranks", Severity::kNotice,
    "collectives of whose ranks only one was recorded; their recorded time includes waiting"};
inline constexpr CounterSpec kMissingPeers{
    "program_collectives_missing_ranks", Severity::kNotice,
    "collectives joined by fewer ranks than their group has"};
inline constexpr CounterSpec kNotWaiting{
    "program_collective_ranks_not_waiting", Severity::kInfo,
    "ranks that ended a collective before the last rank had started; not joined to it"};
inline constexpr CounterSpec kShapesEstimated{
    "program_launch_shapes_estimated", Severity::kNotice,
    "kernels whose launch shape was not recorded; taken from another launch of the same name, else "
    "estimated from duration and class"};
inline constexpr CounterSpec kShapesMostlyEstimated{
    "program_launch_shapes_mostly_estimated", Severity::kLoss,
    "ranks where estimated launch shapes concern over 5 % of the kernel time: how much of the GPU "
    "is left to others is an estimate"};
inline constexpr CounterSpec kKernelTime{
    "program_kernel_ns", Severity::kInfo,
    "nanoseconds of kernels, where launch shapes of some are estimated"};
inline constexpr CounterSpec kEstimatedKernelTime{
    "program_kernel_ns_of_estimated_shape", Severity::kInfo,
    "nanoseconds of those kernels whose launch shape is estimated"};
inline constexpr CounterSpec kHostClocksMoved{
    "program_host_clocks_moved", Severity::kNotice,
    "ranks where operations start before their launches, or waits return before what they waited "
    "for has ended, by up to 200 us: the host's clock is taken as that far off the device's"};
inline constexpr CounterSpec kClockOffsets{
    "program_host_clocks_moved_ns", Severity::kInfo,
    "nanoseconds by which the hosts' clocks are off, added up over those ranks"};
inline constexpr CounterSpec kWaitsBeforeEnd{
    "program_waits_before_end", Severity::kLoss,
    "synchronising calls that returned before the operations that they waited for had ended, by "
    "more than clocks explain; kept as host time only"};
inline constexpr CounterSpec kPassContradictions{
    "program_pass_contradictions", Severity::kNotice,
    "operations that started before the last one of their stream would have ended in the pass "
    "before; repeated, they start later than recorded"};
inline constexpr CounterSpec kUnmarked{
    "program_iterations_unmarked", Severity::kNotice,
    "no iteration is marked: the whole recording is taken as one iteration"};

}  // namespace bubblesim::workload
