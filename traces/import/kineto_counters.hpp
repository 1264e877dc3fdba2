// The counters of everything that the Kineto import drops, repairs, infers or leaves out.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::traces::kineto {

// Left out on purpose.
inline constexpr CounterSpec kCpuOps{"kineto_cpu_ops_skipped", Severity::kInfo,
    "framework operators; replay works from runtime calls"};
inline constexpr CounterSpec kPythonFunctions{"kineto_python_functions_skipped", Severity::kInfo,
    "Python stack frames"};
inline constexpr CounterSpec kFlows{"kineto_flows_skipped", Severity::kInfo,
    "flow arrows; launches are joined by correlation instead, because arrows are incomplete"};
inline constexpr CounterSpec kGpuAnnotations{"kineto_gpu_annotations_skipped", Severity::kInfo,
    "host ranges drawn again on a stream; the host's own are kept"};
inline constexpr CounterSpec kInternalRows{"kineto_profiler_rows_skipped", Severity::kInfo,
    "the profiler's own spans, overhead and instant events"};
inline constexpr CounterSpec kForeignEvents{"kineto_foreign_events_skipped", Severity::kNotice,
    "events of a category that is not Kineto's, or of none"};
inline constexpr CounterSpec kMemorySkipped{"kineto_memory_events_skipped", Severity::kInfo,
    "allocator events of the host, or without totals (before 2021)"};

// Damage.
inline constexpr CounterSpec kTruncated{"kineto_truncated", Severity::kLoss,
    "the file ends before its last bracket: what follows was never written or was cut off"};
inline constexpr CounterSpec kAfterEnd{"kineto_text_after_end_dropped", Severity::kLoss,
    "1: the file goes on after its last bracket (a second document, or what is none); that is not "
    "read"};
inline constexpr CounterSpec kArrayOpen{"kineto_array_unterminated", Severity::kInfo,
    "a bare array without its closing bracket, which the trace format allows"};
inline constexpr CounterSpec kGzipDamaged{"kineto_gzip_damaged", Severity::kLoss,
    "the compressed stream is cut or corrupt: only what unpacked before that is here"};
inline constexpr CounterSpec kDamagedEvents{"kineto_damaged_events_dropped", Severity::kLoss,
    "places that are not valid JSON and could not be repaired; reading went on at the next event"};
inline constexpr CounterSpec kRepairedEvents{"kineto_events_repaired", Severity::kNotice,
    "events with unescaped quotes or backslashes in a name, read by their field structure"};
inline constexpr CounterSpec kRepeatedKeys{"kineto_events_with_repeated_keys", Severity::kLoss,
    "events in which a key stands twice, their args included; the last one counts"};
inline constexpr CounterSpec kRawControls{"kineto_names_with_control_characters",
    Severity::kNotice, "names with raw control characters; they are kept"};
inline constexpr CounterSpec kInvalidUtf8{"kineto_names_not_utf8", Severity::kNotice,
    "names whose bytes are not UTF-8; the wrong bytes became U+FFFD"};

// Times.
inline constexpr CounterSpec kNoTime{"kineto_events_without_time_dropped", Severity::kLoss,
    "events whose ts or dur is missing, NaN, not a number or beyond 73 years"};
inline constexpr CounterSpec kZeroTime{"kineto_zero_timestamps_dropped", Severity::kLoss,
    "device operations with start = end = 0, by which CUPTI says that it has no time"};
inline constexpr CounterSpec kNegativeDuration{"kineto_negative_durations_clamped",
    Severity::kNotice, "durations below zero, set to zero"};
inline constexpr CounterSpec kRounded{"kineto_times_rounded", Severity::kInfo,
    "times with digits below 1 ns, rounded half up"};
inline constexpr CounterSpec kMicroseconds{"kineto_microsecond_resolution", Severity::kNotice,
    "1: every time of the file is a whole number of microseconds"};
inline constexpr CounterSpec kUnitDoubtful{"kineto_time_unit_doubtful", Severity::kLoss,
    "1: every time of the file is a whole number and is taken as microseconds, as Chrome's format "
    "has it, by which half of its launch calls last over 1 ms: they may be nanoseconds, and each "
    "time a thousand times too long"};
inline constexpr CounterSpec kOtherJob{"kineto_ranks_of_another_job", Severity::kLoss,
    "ranks on another GPU model than the first rank, or with less than a tenth of its kernels' "
    "names: their files may be of another job"};
inline constexpr CounterSpec kUnsorted{"kineto_device_ops_out_of_order", Severity::kInfo,
    "device operations that the file has after a later one; they were sorted"};

// Fields.
inline constexpr CounterSpec kNoStream{"kineto_device_ops_without_stream_dropped", Severity::kLoss,
    "device operations whose stream cannot be read"};
inline constexpr CounterSpec kOpsWithoutCategory{"kineto_device_ops_without_category_dropped",
    Severity::kLoss, "events with a stream and a correlation, which a GPU ran, but without a "
    "category (cat): whether they are kernels, copies or memsets is not said"};
inline constexpr CounterSpec kBadShape{"kineto_launch_shapes_missing", Severity::kNotice,
    "kernels without grid and block: what they take of the GPU is not known"};
inline constexpr CounterSpec kDuplicates{"kineto_duplicate_events_dropped", Severity::kNotice,
    "events that the file has twice, equal in every field"};
inline constexpr CounterSpec kDeviceGuessed{"kineto_device_guessed", Severity::kNotice,
    "the device's number is not in deviceProperties; the properties of its first entry are used"};

inline constexpr CounterSpec kOtherPhase{"kineto_events_of_other_phase", Severity::kLoss,
    "operations, calls and annotations written as a begin and an end, or as points (phase not X)"};

// Joins.
inline constexpr CounterSpec kOrphanOps{"kineto_device_ops_without_launch", Severity::kNotice,
    "device operations whose launch is not in the trace: before its window, or not recorded"};
inline constexpr CounterSpec kIdleLaunches{"kineto_launches_without_device_op", Severity::kNotice,
    "launches, copies and memsets with no device operation: after the window, or lost by CUPTI"};
inline constexpr CounterSpec kFileRefused{"kineto_files_left_out", Severity::kError,
    "files of the job that are no trace of a rank"};
inline constexpr CounterSpec kEarlyOps{"kineto_device_ops_before_launch", Severity::kNotice,
    "device operations that start before their launch call: host and device clocks disagree"};
inline constexpr CounterSpec kGraphOps{"kineto_device_ops_of_graphs", Severity::kInfo,
    "device operations that share a launch with others: CUDA graphs"};
inline constexpr CounterSpec kRenumbered{"kineto_correlations_renumbered", Severity::kNotice,
    "calls whose correlation another call has too (merged windows); they got new ones"};
inline constexpr CounterSpec kSyncRows{"kineto_sync_rows", Severity::kInfo,
    "synchronisation rows; they name the streams and events of calls"};
inline constexpr CounterSpec kEdgesWithoutOps{"kineto_stream_waits_without_edge", Severity::kInfo,
    "recorded stream waits with no operation before or after them in the trace"};

// Collectives.
inline constexpr CounterSpec kUnlinkedCollectives{"kineto_collectives_without_record",
    Severity::kNotice, "communication kernels without recorded group, size and type"};
inline constexpr CounterSpec kUnknownCollectives{"kineto_collectives_of_unknown_kind",
    Severity::kNotice, "communication kernels whose name does not say what they do"};
inline constexpr CounterSpec kKindFromRange{"kineto_collective_kinds_from_ranges",
    Severity::kNotice, "kinds read from the host range nccl:... around the launch"};
inline constexpr CounterSpec kGroupGuessed{"kineto_collective_groups_guessed", Severity::kNotice,
    "collectives without a group, given the only process group of the job"};
inline constexpr CounterSpec kSequenceByOrder{"kineto_collective_sequences_by_order",
    Severity::kNotice, "collectives numbered by their order of start in their group"};
inline constexpr CounterSpec kRanksTruncated{"kineto_group_ranks_truncated", Severity::kNotice,
    "lists of ranks that PyTorch cut after 30 and that distributedInfo does not complete"};
inline constexpr CounterSpec kUnknownDtype{"kineto_collective_dtypes_unknown", Severity::kNotice,
    "collectives whose element type is not known; their bytes are not recorded"};

// Ranks.
inline constexpr CounterSpec kRankUnknown{"kineto_rank_not_recorded", Severity::kInfo,
    "1: the file has no distributedInfo with a rank"};
inline constexpr CounterSpec kRankFromName{"kineto_rank_from_file_name", Severity::kNotice,
    "1: distributedInfo has no rank; the file's name gave it"};
inline constexpr CounterSpec kRankFromOrder{"kineto_rank_from_file_order", Severity::kNotice,
    "1: neither distributedInfo nor the file's name gives a rank; its place among the files did"};
inline constexpr CounterSpec kBadMetadata{"kineto_metadata_unreadable", Severity::kNotice,
    "top-level values (deviceProperties, distributedInfo, base time) that are not as expected"};

}  // namespace bubblesim::traces::kineto
