// What NCCL's NVTX ranges carry: the communicator's hash, bytes, ranks, and the peers of sends.
//
// NCCL registers the layout of its payloads; fields are found by the names that it gives them.
// Payloads whose registration was not seen are read by NCCL's identifiers and sizes (2.23 to 2.30;
// before 2.25 they have no communicator). NCCL's bytes are those of its count argument.
#pragma once

#include <cstdint>
#include <span>

#include "capture/record/nvtx/nvtx_abi.hpp"

namespace bubblesim::capture {

/// The most parts of a payload that are read; a range with more is not NCCL's.
inline constexpr std::int32_t kMostPayloads = 16;

struct NcclPayload {
  std::uint64_t communicator = 0;  ///< 0: not recorded
  std::uint64_t bytes = 0;         ///< 0: not recorded
  std::uint32_t ranks = 0;         ///< 0: not recorded
  std::uint32_t place = 0;         ///< this rank's place plus 1, when a communicator is made
  std::uint32_t peer = 0;          ///< of a send or a receive: the peer's place, plus 1
};

/// Keeps the layout of a payload of NCCL's domain; bounded in number. Later registrations of an id
/// are ignored. Null pointers and odd contents are ignored.
void register_nccl_schema(const nvtx_abi::SchemaAttributes& schema) noexcept;

[[nodiscard]] NcclPayload read_nccl_payload(std::span<const nvtx_abi::PayloadData> parts) noexcept;

/// Keeps a communicator from the range in which it is made, also while nothing records. A
/// communicator in which the process has several ranks has no place.
void remember_communicator(const NcclPayload& made) noexcept;
[[nodiscard]] NcclPayload known_communicator(std::uint64_t hash) noexcept;

}  // namespace bubblesim::capture
