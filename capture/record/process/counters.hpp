// The counters of a recording besides the decoder's; they go into the file and the summary.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::capture {

inline constexpr CounterSpec kCuptiDropped{"capture_cupti_dropped", Severity::kLoss,
    "records that CUPTI itself dropped: its buffers on the device were full"};
inline constexpr CounterSpec kRecordsDiscarded{"capture_records_discarded", Severity::kLoss,
    "records discarded because all host buffers were full: the writer fell behind"};
inline constexpr CounterSpec kBuffersLate{"capture_buffers_late", Severity::kLoss,
    "buffers that CUPTI gave back only after its session had ended; their records are missing"};
inline constexpr CounterSpec kRecordsUnwritten{"capture_records_unwritten", Severity::kLoss,
    "records that could not be written to the file"};
inline constexpr CounterSpec kHostEventsDropped{"capture_host_events_dropped", Severity::kLoss,
    "ranges, marks and collectives dropped because their queue was full"};
inline constexpr CounterSpec kHostEventsCut{"capture_host_events_cut", Severity::kNotice,
    "ranges, marks and collectives whose names or peers were too long and were cut"};
inline constexpr CounterSpec kRangesBegunBefore{"capture_ranges_begun_before", Severity::kInfo,
    "ranges that began before the recording did; left out"};
inline constexpr CounterSpec kHeldDropped{"capture_held_records_dropped", Severity::kLoss,
    "records of the time that --last asked for, dropped because memory held too many"};
inline constexpr CounterSpec kBegunLate{"capture_first_iteration_missed", Severity::kLoss,
    "iterations that had passed before CUPTI was ready: the recording begins later than asked"};
inline constexpr CounterSpec kStopIncomplete{"capture_stop_incomplete", Severity::kNotice,
    "recordings whose CUPTI refused a step of stopping; the last records may be missing"};
inline constexpr CounterSpec kWriterMicroseconds{"capture_writer_cpu_us", Severity::kInfo,
    "CPU time of the recorder's writer thread, in microseconds"};

}  // namespace bubblesim::capture
