// Reads NVTX ranges: markers, NCCL's announcements of collectives, NCCL's ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

// Payloads of NVTX ranges: named numbers, as bytes by a schema or as JSON text.
//
// The bytes, as Nsight Systems 2024 to 2026 writes them, are a head of 32 (number of payloads,
// schema, size of the payload, end; 8 each) and the payload. Fields are found by their names.

/// The fields of NCCL's payloads that the import uses; nothing: the payload lacks the field.
struct PayloadFields {
  std::optional<std::uint64_t> communicator;
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> ranks;
  std::optional<std::uint64_t> rank;
  std::optional<std::uint64_t> device;
  std::optional<std::uint64_t> peer;  ///< of a send or a receive, in the communicator
};

/// The fields of a text `{"NCCL communicator ID": 1234, ...}`; numbers may be in quotes and have
/// commas.
[[nodiscard]] std::optional<PayloadFields> payload_of_json(std::string_view text);

/// A process's rank in an NCCL communicator, from the payload of ncclCommInit*.
struct NvtxCommunicator {
  std::uint64_t id = 0;
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint32_t device = 0;  ///< CUDA's number of the GPU in its process
  bool has_device = false;
};

/// Communicators by process, each process's in the order of the table.
using Communicators = std::map<std::int64_t, std::vector<NvtxCommunicator>>;

/// Adds the markers of NVTX ranges and the notes of NCCL's ranges, with their collectives. Call
/// read_calls() first, which finds the ranks for which a range's thread works.
[[nodiscard]] Communicators read_nvtx(NsysSession& session, RankSet& set);

}  // namespace bubblesim::traces::nsys
