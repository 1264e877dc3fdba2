// Activity buffers as CUPTI fills them, written by hand, and a walker for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "capture/record/cupti/api.hpp"
#include "tests/fakes/cupti/record_walk.hpp"

namespace bubblesim::capture {

using cupti::Result;

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
inline CuptiApi walker(std::uint32_t version = kVersion13) {
  CuptiApi api;
  api.version = version;
  api.get_next_record = version < cupti::kFirstWithEventSync ? next_record<kVersion12>
                                                             : next_record<kVersion13>;
  return api;
}

}  // namespace bubblesim::capture
