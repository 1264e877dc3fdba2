// Counters of reading a .btr file. None of them is an Error: reading keeps every readable record.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::traces::format {

inline constexpr CounterSpec kEndMissing{
    "btr_end_missing", Severity::kLoss,
    "files without an end chunk: the writer was stopped or the file was cut; how much followed "
    "is not known"};
inline constexpr CounterSpec kBytesLost{
    "btr_bytes_lost", Severity::kLoss, "bytes of the file that belong to no whole chunk"};
inline constexpr CounterSpec kChunksLost{
    "btr_chunks_lost", Severity::kLoss,
    "chunks that are damaged, cut off or missing; their records are not in the trace"};
inline constexpr CounterSpec kChunksMalformed{
    "btr_chunks_malformed", Severity::kLoss,
    "chunks with right checksums whose contents break the format; skipped"};
inline constexpr CounterSpec kRecordsLost{
    "btr_records_lost", Severity::kLoss,
    "records known to have been written that are not in the trace"};
inline constexpr CounterSpec kChunksUnknown{
    "btr_chunks_unknown", Severity::kNotice,
    "chunks of a kind that this version does not know, skipped; a later version wrote the file"};
inline constexpr CounterSpec kEnumsUnknown{
    "btr_enums_unknown", Severity::kNotice,
    "kinds of calls, operations, copies, collectives or markers that this version does not know, "
    "read as 'other'"};
inline constexpr CounterSpec kHeaderDamaged{
    "btr_header_damaged", Severity::kLoss,
    "file headers with a wrong checksum; the version was taken to be the reader's own"};
inline constexpr CounterSpec kBytesAfterEnd{
    "btr_bytes_after_end", Severity::kNotice, "bytes after the end chunk, ignored"};
inline constexpr CounterSpec kDescriptionsLost{
    "btr_rank_descriptions_lost", Severity::kLoss,
    "ranks whose description is missing: device and world size are not known"};
inline constexpr CounterSpec kNamesLost{
    "btr_names_lost", Severity::kLoss,
    "records whose name is missing from the file; they are named '(lost)'"};
inline constexpr CounterSpec kShapesLost{
    "btr_shapes_lost", Severity::kLoss,
    "kernels whose launch shape is missing from the file; it is not known"};
inline constexpr CounterSpec kThreadsLost{
    "btr_threads_lost", Severity::kLoss,
    "host threads missing from the file that records refer to; each got a nameless stand-in"};
inline constexpr CounterSpec kStreamsLost{
    "btr_streams_lost", Severity::kLoss,
    "streams missing from the file that records refer to; each got a stand-in of its own"};
inline constexpr CounterSpec kLaunchesLost{
    "btr_launches_lost", Severity::kLoss,
    "device operations whose host call is missing from the file; they count as launched outside"};
inline constexpr CounterSpec kCollectivesLost{
    "btr_collectives_lost", Severity::kLoss,
    "device operations whose collective is missing from the file"};
inline constexpr CounterSpec kEdgesLost{
    "btr_edges_lost", Severity::kLoss,
    "edges dropped because one of their device operations is missing from the file"};

}  // namespace bubblesim::traces::format
