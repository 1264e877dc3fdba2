// Everything that the import of Nsight Systems exports drops, repairs, infers or leaves out.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::traces::nsys {

// Damage.
inline constexpr CounterSpec kTableDamaged{"nsys_tables_damaged", Severity::kLoss,
    "tables that could not be read to their end; the rows before the damage are kept"};
inline constexpr CounterSpec kBadRows{"nsys_rows_unreadable_dropped", Severity::kLoss,
    "rows without a usable time, GPU or stream: missing, of the wrong type, or beyond 36 years"};
inline constexpr CounterSpec kGzipDamaged{"nsys_gzip_damaged", Severity::kLoss,
    "the compressed file is cut or corrupt; what unpacked before that was read"};

// Times.
inline constexpr CounterSpec kNoBase{"nsys_session_start_unknown", Severity::kNotice,
    "1: no session start time; times count from the start of the profile, not from 1970"};
inline constexpr CounterSpec kZeroTime{"nsys_zero_timestamps_dropped", Severity::kLoss,
    "device operations with start = end = 0, by which CUPTI says that it has no time"};
inline constexpr CounterSpec kNegativeDuration{"nsys_negative_durations_clamped",
    Severity::kNotice, "durations below zero, set to zero"};

// Names.
inline constexpr CounterSpec kNameMissing{"nsys_names_missing", Severity::kNotice,
    "names that StringIds does not have"};
inline constexpr CounterSpec kInvalidUtf8{"nsys_names_not_utf8", Severity::kNotice,
    "names whose bytes are not UTF-8; the wrong bytes became U+FFFD"};

// Device operations.
inline constexpr CounterSpec kNoKernels{"nsys_kernels_not_in_export", Severity::kLoss,
    "1: neither CUPTI_ACTIVITY_KIND_KERNEL nor _GRAPH_TRACE has a row: all of the device's work is "
    "copies and memsets. If the job launched kernels, profile it with nsys profile --trace=cuda "
    "and export all tables with nsys export --type sqlite"};
inline constexpr CounterSpec kBadShape{"nsys_launch_shapes_missing", Severity::kNotice,
    "kernels without grid and block: what they take of the GPU is not known"};
inline constexpr CounterSpec kDuplicates{"nsys_duplicate_rows_dropped", Severity::kNotice,
    "device operations that the export has twice, with the same correlation, times, stream, name, "
    "shape and bytes; not among kernels of one graph"};
inline constexpr CounterSpec kGraphOps{"nsys_graphs_as_one_operation", Severity::kNotice,
    "CUDA graphs recorded as one span: taken as one kernel whose launch shape is not known; "
    "nsys profile --cuda-graph-trace=node records their kernels"};
inline constexpr CounterSpec kGraphsTwice{"nsys_graphs_with_kernels", Severity::kInfo,
    "spans of CUDA graphs whose kernels were recorded too; the span is left out"};
inline constexpr CounterSpec kDeviceUnknown{"nsys_device_not_described", Severity::kNotice,
    "ranks whose GPU has no row in TARGET_INFO_GPU"};

// Processes and GPUs.
inline constexpr CounterSpec kOtherDevices{"nsys_ops_on_devices_without_kernels",
    Severity::kNotice,
    "copies and memsets on a GPU where their process ran no kernel; kept with its main GPU"};
inline constexpr CounterSpec kOtherProcesses{"nsys_ops_of_processes_without_kernels_dropped",
    Severity::kLoss, "copies and memsets of processes that ran no kernel at all"};
inline constexpr CounterSpec kForeignCalls{"nsys_calls_of_processes_without_rank", Severity::kInfo,
    "calls of processes that ran no kernel"};
inline constexpr CounterSpec kSharedCalls{"nsys_calls_given_by_thread", Severity::kNotice,
    "calls of a process with several GPUs that name none; given to the GPU that their thread "
    "used last"};
inline constexpr CounterSpec kNoProcess{"nsys_process_not_recorded", Severity::kNotice,
    "device operations without a process; taken as one process"};
inline constexpr CounterSpec kFailedCalls{"nsys_calls_failed", Severity::kInfo,
    "calls that returned an error or 'not ready'"};

// Ranks.
inline constexpr CounterSpec kRankFromMpi{"nsys_ranks_from_mpi", Severity::kInfo,
    "ranks that MPI_RANKS gives"};
inline constexpr CounterSpec kRankFromNccl{"nsys_ranks_from_nccl", Severity::kNotice,
    "ranks taken from the largest NCCL communicator of each process"};
inline constexpr CounterSpec kRankFromEnvironment{"nsys_ranks_from_environment",
    Severity::kNotice, "ranks taken from the environment that nsys ran in (RANK, PMI_RANK, ...)"};
inline constexpr CounterSpec kRankFromName{"nsys_ranks_from_file_names", Severity::kNotice,
    "ranks taken from the names of files"};
inline constexpr CounterSpec kRankFromOrder{"nsys_ranks_from_order", Severity::kNotice,
    "ranks that nothing names; numbered by file, process and GPU"};

// Synchronisation.
inline constexpr CounterSpec kSyncRows{"nsys_sync_rows", Severity::kInfo,
    "synchronisation and event rows; they name the streams and events of calls"};

// NVTX.
inline constexpr CounterSpec kOpenRanges{"nsys_nvtx_ranges_open_dropped", Severity::kNotice,
    "NVTX ranges that were not closed before the profile ended"};
inline constexpr CounterSpec kOtherNvtx{"nsys_nvtx_rows_skipped", Severity::kInfo,
    "NVTX domains, categories and names of threads"};
inline constexpr CounterSpec kBadPayload{"nsys_nccl_payloads_unreadable", Severity::kNotice,
    "NCCL ranges whose payload cannot be read, or has numbers that no job has (ranks, bytes); the "
    "kernel's name gives the kind alone"};
inline constexpr CounterSpec kScatterBytes{"nsys_reduce_scatters_without_size", Severity::kNotice,
    "reduce-scatters whose communicator's size is unknown: NCCL names the bytes of one rank's "
    "result, the input's are not recorded"};

// Memory.
inline constexpr CounterSpec kMemoryRows{"nsys_memory_rows_skipped", Severity::kInfo,
    "allocations on a GPU of no rank, or of host memory"};

}  // namespace bubblesim::traces::nsys
