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

inline constexpr std::uint32_t kVersion13 = 130000;
inline constexpr std::uint32_t kVersion12 = 24;

/// Bytes from a record of this kind to the next; 0: CUPTI has no such kind.
[[nodiscard]] std::size_t stride_of(std::uint32_t kind, std::uint32_t version);

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

/// A CuptiApi with one function, get_next_record(), which walks a RecordBuffer.
[[nodiscard]] CuptiApi walker(std::uint32_t version = kVersion13);

}  // namespace bubblesim::capture
