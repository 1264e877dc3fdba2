// Activity buffers as CUPTI fills them, written by hand, and a walker for them.
//
// Distances between records are those of CUDA 13.0, or of 12.6 for an older CUPTI, whose records of
// events and synchronisations are shorter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "capture/record/cupti/abi.hpp"
#include "capture/record/cupti/api.hpp"

namespace bubblesim::capture {

using cupti::Result;

inline constexpr std::uint32_t kVersion13 = 130000;
inline constexpr std::uint32_t kVersion12 = 24;

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

class RecordBuffer {
 public:
  explicit RecordBuffer(std::uint32_t version = kVersion13) : version_(version) {}

  template <class Record>
  void add(const Record& record) {
    const std::size_t stride = stride_of(record.kind, version_);
    const std::size_t place = bytes();
    words_.resize(words_.size() + stride / sizeof(std::uint64_t));
    std::memcpy(data() + place, &record, std::min(sizeof(Record), stride));
  }
  [[nodiscard]] std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  [[nodiscard]] std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }
  void clear() { words_.clear(); }

 private:
  std::uint32_t version_;
  std::vector<std::uint64_t> words_;
};

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

/// A CuptiApi with one function, get_next_record(), which walks a RecordBuffer.
inline CuptiApi walker(std::uint32_t version = kVersion13) {
  CuptiApi api;
  api.version = version;
  api.get_next_record = version < cupti::kFirstWithEventSync ? next_record<kVersion12>
                                                             : next_record<kVersion13>;
  return api;
}

}  // namespace bubblesim::capture
