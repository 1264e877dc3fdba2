// How CUPTI lays activity records into a buffer, and its walk through them: for tests' own buffers
// and for the fake CUPTI.
//
// Distances between records are those of CUDA 13.0, or of 12.6 for an older CUPTI, whose records of
// events and synchronisations are shorter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/record/cupti/abi.hpp"

namespace bubblesim::capture {

inline constexpr std::uint32_t kVersion13 = 130000;
inline constexpr std::uint32_t kVersion12 = 24;
/// MARKER, which the recorder does not know.
inline constexpr std::uint32_t kUnknownKind = 12;

/// Bytes from a record of this kind to the next; 0: CUPTI has no such kind.
inline std::size_t stride_of(std::uint32_t kind, std::uint32_t version) {
  const bool older = version < cupti::kFirstWithEventSync;
  switch (kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return 216;
    case cupti::kKindMemcpy:
    case cupti::kKindMemcpyPeer:
      return 96;
    case cupti::kKindMemset:
      return 88;
    case cupti::kKindSynchronization:
      return older ? 40 : 56;
    case cupti::kKindCudaEvent:
      return older ? 24 : 56;
    case cupti::kKindDriver:
    case cupti::kKindRuntime:
      return 40;
    case cupti::kKindOverhead:
    case cupti::kKindGraphTrace:
    case kUnknownKind:
      return 56;
    case cupti::kKindMemory2:
      return 128;
    case cupti::kKindDevice:
      return 184;
    case cupti::kKindContext:
      return 32;
    case cupti::kKindStream:
      return 24;
    default:
      return 0;
  }
}

template <std::uint32_t Version>
cupti::Result next_record(std::uint8_t* buffer, std::size_t valid, void** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    auto* const before = static_cast<std::uint8_t*>(*record);
    next = before + stride_of(reinterpret_cast<cupti::Record*>(before)->kind, Version);
  }
  const auto left = static_cast<std::size_t>(buffer + valid - next);
  if (next >= buffer + valid || left < sizeof(std::uint64_t))
    return cupti::Result::kMaxLimitReached;
  const std::size_t stride = stride_of(reinterpret_cast<cupti::Record*>(next)->kind, Version);
  if (stride == 0) return cupti::Result::kInvalidKind;
  if (stride > left) return cupti::Result::kMaxLimitReached;
  *record = next;
  return cupti::Result::kSuccess;
}

}  // namespace bubblesim::capture
