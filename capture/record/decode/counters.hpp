// Everything that decoding drops, guesses or does not know, by name.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::capture::decode {

inline constexpr CounterSpec kNoTime{"cupti_records_without_time_dropped", Severity::kLoss,
    "operations and calls whose start or end is 0: CUPTI has no time for them, mostly because "
    "they were under way when the recording stopped"};
inline constexpr CounterSpec kNegative{"cupti_negative_durations_clamped", Severity::kNotice,
    "records that end before they start, by CUPTI's error in turning the device's clock into "
    "the host's; their duration was set to 0"};
inline constexpr CounterSpec kUnknownKind{"cupti_unknown_records_skipped", Severity::kNotice,
    "records of a kind that the recorder does not know"};
inline constexpr CounterSpec kDamaged{"cupti_buffers_damaged", Severity::kLoss,
    "buffers that CUPTI could not read to the end; what follows in them is lost"};
inline constexpr CounterSpec kUnnamed{"cupti_kernels_unnamed", Severity::kNotice,
    "kernels without a name"};
inline constexpr CounterSpec kDirection{"cupti_copies_of_unknown_direction", Severity::kNotice,
    "copies that say neither from where nor to where"};
inline constexpr CounterSpec kUnlisted{"cupti_unlisted_calls", Severity::kInfo,
    "calls that need not be recorded, but are where CUPTI cannot leave single calls out, and "
    "until it has done so at the start; they are named by number"};
inline constexpr CounterSpec kFailedCall{"cupti_failed_calls", Severity::kInfo,
    "calls that returned an error to the job"};
inline constexpr CounterSpec kSyncType{"cupti_synchronisations_of_unknown_type",
    Severity::kNotice, "synchronisations of a type that the recorder does not know; dropped"};
inline constexpr CounterSpec kNoContext{"cupti_streams_of_unknown_device", Severity::kNotice,
    "streams whose context no record had described; they are said to be of device 0"};
inline constexpr CounterSpec kLatePriority{"cupti_stream_priorities_late", Severity::kInfo,
    "streams whose priority became known after their first use; it is not in the trace"};
inline constexpr CounterSpec kNoThread{"cupti_stalls_without_thread", Severity::kInfo,
    "spans of the profiler's own work that belong to no thread; not in the trace"};
inline constexpr CounterSpec kNoThreadTime{"cupti_stalls_without_thread_ns", Severity::kInfo,
    "nanoseconds of those spans"};
inline constexpr CounterSpec kAfterStop{"capture_records_after_stop", Severity::kInfo,
    "calls of after the stop and what they launched, left out: CUPTI records on until the GPU has "
    "ended what was launched before"};
inline constexpr CounterSpec kReplaced{"cupti_allocations_replaced", Severity::kInfo,
    "allocations at an address that was in use: its release was not recorded"};
inline constexpr CounterSpec kUnknownRelease{"cupti_releases_of_earlier_memory", Severity::kInfo,
    "releases of memory that was allocated before the recording; the samples do not hold it"};
inline constexpr CounterSpec kMemoryFull{"cupti_allocations_not_followed", Severity::kLoss,
    "allocations beyond a million live ones; the samples do not hold them"};

}  // namespace bubblesim::capture::decode
