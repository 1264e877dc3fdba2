// The record of a finished run, as a store keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/observe/latency.hpp"
#include "sim/observe/result_rows.hpp"

namespace bubblesim::store {

/// An axis's value in this run: a JSON pointer into the run config, and JSON text.
struct Setting {
  std::string pointer;
  std::string value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

struct PlannedRun {
  std::uint64_t index = 0;        ///< in the plan, from 0
  std::string key;                ///< 32 hexadecimal digits: sim/sweep/run_key.hpp
  std::string point;              ///< 16 digits: hash of the run without seed and repetition
  std::vector<Setting> settings;  ///< in the order of the axes
  std::uint64_t seed = 1;
  std::uint32_t repetition = 0;   ///< index among the runs of its point
  std::string config;             ///< the whole run config, compact JSON, paths absolute
  friend bool operator==(const PlannedRun&, const PlannedRun&) = default;
};

enum class RunStatus : std::uint8_t { kDone, kFailed };

struct RecordedLatency {
  std::uint32_t policy = 0;  ///< as in ResultRow
  std::uint32_t filler = 0;
  observe::LatencyHistogram histogram;
  friend bool operator==(const RecordedLatency&, const RecordedLatency&) = default;
};

struct RunRecord {
  PlannedRun run;
  std::string sweep;             ///< name of the sweep
  RunStatus status = RunStatus::kDone;
  std::string reason;            ///< of a failure: every fault on its own line
  std::vector<observe::ResultRow> rows;
  std::vector<RecordedLatency> latencies;
  CounterSet counters;           ///< of the run and its inputs
  // Not part of the result: these members differ between repetitions of a run.
  std::string host;
  std::string version;           ///< of the program, with its commit if known
  std::int64_t finished_unix_ns = 0;
  Duration cpu{};                ///< of the run's thread
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

// A row's values by the names of their columns (sim/observe/OUTPUTS.md).

/// Nothing: not measured, no number, or no such column.
[[nodiscard]] std::optional<double> number_in(const observe::ResultRow& row,
                                              std::string_view column);
/// Empty: not said, no text, or no such column.
[[nodiscard]] std::string text_in(const observe::ResultRow& row, std::string_view column);
[[nodiscard]] std::optional<double> number_of(const observe::Cell& cell);

// A check sum of a run's record, stored with it: finds damage that the database does not notice (a
// bit inside a number) when the whole record is read.

/// The digest of all stored members of the record; FNV-1a with 64 bits (Fowler, Noll, Vo:
/// draft-eastlake-fnv), no defence against forgery. NaN counts as absent, -0 as 0. Precondition:
/// rows have a cell for each column.
[[nodiscard]] std::uint64_t record_digest(const RunRecord& record);

/// The digest of a run's membership in a sweep: sweep, key, index, point, repetition, settings.
[[nodiscard]] std::uint64_t membership_digest(std::string_view sweep, const PlannedRun& run);

}  // namespace bubblesim::store
