// What building a program had to infer, clamp or leave out.
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
    "cross-stream dependencies inferred from event calls whose streams were not recorded"};
inline constexpr CounterSpec kInferredWaits{
    "program_waits_inferred", Severity::kInfo,
    "synchronising calls whose stream or event was inferred from what ended before they returned"};
inline constexpr CounterSpec kInferredHandOvers{
    "program_hand_overs_inferred", Severity::kInfo,
    "pauses of a host thread that end after another thread's call, taken as waiting for it"};
inline constexpr CounterSpec kTrimmedOverlaps{
    "program_overlaps_trimmed", Severity::kNotice,
    "operations recorded as overlapping their predecessor on the same stream; shortened to follow"};
inline constexpr CounterSpec kUnexplainedDelays{
    "program_delays_unexplained", Severity::kNotice,
    "operations that started over 20 us after everything known to hold them; kept as a lag"};
inline constexpr CounterSpec kClampedSpans{
    "program_spans_clamped", Severity::kLoss, "delays over 4.29 s, shortened to that"};
inline constexpr CounterSpec kBackwardTimes{
    "program_backward_times", Severity::kNotice,
    "operations recorded as starting before their launch; taken as starting with it"};
inline constexpr CounterSpec kNotJoined{
    "program_collectives_not_joined", Severity::kNotice,
    "collectives without a counterpart on other ranks; their recorded time includes waiting"};
inline constexpr CounterSpec kMissingPeers{
    "program_collectives_missing_ranks", Severity::kNotice,
    "collectives joined by fewer ranks than their group has"};
inline constexpr CounterSpec kNotWaiting{
    "program_collective_ranks_not_waiting", Severity::kInfo,
    "ranks that ended a collective before the last rank had started; not joined to it"};
inline constexpr CounterSpec kUnmarked{
    "program_iterations_unmarked", Severity::kNotice,
    "no iteration is marked: the whole recording is taken as one iteration"};

}  // namespace bubblesim::workload
