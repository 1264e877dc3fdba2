// Writes a recorded job as a Chrome trace (a process for each rank, a track for each host thread
// and stream, arrows from launches to device work, memory over time) and as CSV.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "sim/base/result.hpp"
#include "traces/export/chrome_trace.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Times are counted from the job's earliest record, whose time is `origin_ns` in "otherData".
/// `job` outlives the result, which refers to its names.
[[nodiscard]] ChromeTrace job_to_chrome(const JobTrace& job);

// A recorded job as CSV: a row for each host call and device operation, for spreadsheets and
// pandas.
//
// Columns: traces/export/README.md. Times are those of the trace, in exact nanoseconds; absent
// values are empty cells. Quoting follows RFC 4180; lines end with "\n".

/// Writes row by row: each rank's host calls, then its device operations, in trace order. Memory:
/// one row. Returns the number of rows, without the header. A failed write shows in the state of
/// `out`.
std::uint64_t write_job_csv(std::ostream& out, const JobTrace& job);

/// Writes to a file; a fault if it cannot be written whole.
[[nodiscard]] Result<std::uint64_t> write_job_csv_file(const std::string& path,
                                                       const JobTrace& job);

}  // namespace bubblesim::traces
