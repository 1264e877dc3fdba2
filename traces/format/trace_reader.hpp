// Reads a .btr file (traces/README.md) into records.
//
// A damaged file is read as far as it is whole; what is missing is counted (counters.hpp), never
// guessed. Every id of the result points at a record that exists. Memory: the records, plus one
// chunk. Not for use by several threads on one file handle; calls share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

struct ReadOutcome {
  JobTrace job;         ///< ranks in order of their number; records in the order written
  CounterSet counters;  ///< what the file lost; a rank's own counters are in its trace
};

/// Fails only if the file cannot be read, is no .btr file or has another major version.
[[nodiscard]] Result<ReadOutcome> read_job(const std::string& path);
/// The same for a file held in memory; `name` stands for the path in messages.
[[nodiscard]] Result<ReadOutcome> read_job_bytes(std::span<const std::uint8_t> bytes,
                                                 const std::string& name);

}  // namespace bubblesim::traces::format
