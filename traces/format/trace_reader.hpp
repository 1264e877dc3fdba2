// Reads a .btr file (traces/format/FORMAT.md) into records.
//
// Undamaged chunks of a damaged file are read; missing records are counted (counters.hpp), never
// guessed. Every id of the result refers to an existing record. Memory: the records, plus one
// chunk. Calls share no state, but two threads must not read through one file handle at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

struct ReadOutcome {
  JobTrace job;         ///< ranks in order of their number; records in the order written
  CounterSet counters;  ///< losses of the file; a rank's own counters are in its trace
};

/// Fails only if the file cannot be read, is not a .btr file or has another major version.
[[nodiscard]] Result<ReadOutcome> read_job(const std::string& path);
/// Reads as read_job does, from a file in memory; `name` is its path in messages.
[[nodiscard]] Result<ReadOutcome> read_job_bytes(std::span<const std::uint8_t> bytes,
                                                 const std::string& name);

}  // namespace bubblesim::traces::format
