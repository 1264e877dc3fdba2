#include "tests/unit/capture/decode/record_buffer.hpp"

namespace bubblesim::capture {
namespace {

using cupti::Result;

template <std::uint32_t Version>
Result next_record(std::uint8_t* buffer, std::size_t valid, void** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    auto* const before = static_cast<std::uint8_t*>(*record);
    next = before + stride_of(reinterpret_cast<cupti::Record*>(before)->kind, Version);
  }
  const auto left = static_cast<std::size_t>(buffer + valid - next);
  if (next >= buffer + valid || left < sizeof(std::uint64_t)) return Result::kMaxLimitReached;
  const std::size_t stride = stride_of(reinterpret_cast<cupti::Record*>(next)->kind, Version);
  if (stride == 0) return Result::kInvalidKind;
  if (stride > left) return Result::kMaxLimitReached;
  *record = next;
  return Result::kSuccess;
}

}  // namespace

std::size_t stride_of(std::uint32_t kind, std::uint32_t version) {
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
    case 12:  // MARKER, which the recorder does not know
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

CuptiApi walker(std::uint32_t version) {
  CuptiApi api;
  api.version = version;
  api.get_next_record = version < cupti::kFirstWithEventSync ? next_record<kVersion12>
                                                             : next_record<kVersion13>;
  return api;
}

}  // namespace bubblesim::capture
