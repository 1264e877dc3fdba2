// Writes a recorded job as Chakra execution traces (MLCommons), a protobuf file for each rank, for
// ASTRA-sim and other readers of Chakra, with exact nanoseconds in attributes of our own.
//
// A node's id is the index of its operation; calls follow; markers and stalls are METADATA_NODEs.
// data_deps of an operation: its launch, its stream's previous operation, its edges. data_deps of a
// call: the awaited operations. ctrl_deps: the launch. Attributes:
// traces/import/chakra/chakra_attributes.hpp. Importing the files again
// (traces/import/chakra/chakra_import.hpp) gives the same operations, calls, times, streams and
// shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Counts of written and omitted parts.
struct ChakraStats {
  std::vector<std::string> files;           ///< one for each rank, in the job's order
  std::uint64_t nodes = 0;
  std::uint64_t dependencies = 0;           ///< data dependencies of all nodes
  std::uint64_t collectives_as_compute = 0; ///< of kinds that the schema lacks
  std::uint64_t ends_unknown = 0;           ///< sends and receives whose partner is not known
  std::uint64_t groups_left_out = 0;        ///< process groups whose ranks are not known
  std::uint64_t records_left_out = 0;       ///< memory samples and clock pairs
};

/// Writes `prefix`.RANK.et for every rank, the name by which ASTRA-sim finds them. A file appears
/// only once it is complete. Memory: a few integers for each record.
[[nodiscard]] Result<ChakraStats> export_chakra(const JobTrace& job, const std::string& prefix);

/// One rank's file as bytes; for tests and small traces.
[[nodiscard]] std::string chakra_bytes(const RankTrace& rank);

}  // namespace bubblesim::traces
