// Recognises kernels that communicate between GPUs, and their kind, by kernel name, by PyTorch's
// recorded collective name, and by its host ranges "nccl:all_reduce" around launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Communication kernels: NCCL, RCCL, DeepEP, NVSHMEM, custom and symmetric-memory all-reduces,
/// Transformer Engine's userbuffers.
[[nodiscard]] bool is_communication_kernel(std::string_view kernel_name);

/// kUnknown if the name does not give the kind (DeepEP dispatch and combine, NVSHMEM).
[[nodiscard]] CollectiveKind kind_of_kernel(std::string_view kernel_name);

/// The kind for a value of "Collective name" ("_allgather_base", "all_to_allv") or for the rest of
/// a range's name after "nccl:".
[[nodiscard]] CollectiveKind kind_of_collective(std::string_view collective_name);

/// Bytes of an element of a PyTorch dtype ("BFloat16"); nothing for unknown names.
[[nodiscard]] std::optional<std::uint32_t> dtype_bytes(std::string_view dtype);

// Recognises named ranges that mark iterations, phases and micro-batches (table:
// traces/join/README.md).

struct MarkerClass {
  MarkerKind kind = MarkerKind::kUser;
  std::int64_t number = -1;  ///< -1: the name gives none
};

/// Upper and lower case are equal.
[[nodiscard]] MarkerClass classify_marker(std::string_view name);

// Names of kernels as written in their source code.

/// Demangles a C++ name; any other name stays as it is.
[[nodiscard]] std::string demangled(const char* name);

}  // namespace bubblesim::traces
