// NCCL's names of operations and data types, and the meaning of its counts.
//
// NCCL's "count" is the number of elements that go between one rank and one other; a Collective's
// `bytes` are this rank's whole input. Sources: the comments of nccl.h; NCCL's table of types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/trace.hpp"

namespace bubblesim::capture {

/// How a rank's input follows from NCCL's message size.
enum class NcclInput : std::uint8_t {
  kMessage,          ///< it is the message: all-reduce, all-gather's send count, a send
  kMessageEachRank,  ///< a message for every rank: reduce-scatter's receive count, all-to-all
};

struct NcclCall {
  traces::CollectiveKind kind = traces::CollectiveKind::kUnknown;
  NcclInput input = NcclInput::kMessage;
};

/// `name` is "AllReduce" as the profiler interface says it, or "ncclAllReduce", the function.
/// Nothing for null, and for calls that move no data between ranks (ncclGroupEnd).
[[nodiscard]] std::optional<NcclCall> nccl_call(const char* name);

/// Bytes of an element, by "ncclFloat32" and the like; 0 for unknown names and null.
[[nodiscard]] std::uint64_t nccl_type_bytes(const char* name);

/// This rank's input; 0 (not recorded) where `ranks` is needed and not known, or on overflow.
[[nodiscard]] std::uint64_t nccl_input_bytes(const NcclCall& call, std::uint64_t message_bytes,
                                             std::uint32_t ranks);

/// "nccl:0123456789abcdef": NCCL gives all ranks of a communicator the same hash.
[[nodiscard]] std::string nccl_group_name(std::uint64_t communicator_hash);

}  // namespace bubblesim::capture
