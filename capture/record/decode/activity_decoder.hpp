// Turns a buffer of CUPTI activity records into trace records.
//
// Records are read as prefixes whose layout no CUPTI from 10 to 13 has changed
// (capture/record/cupti/abi.hpp); the stride comes from CUPTI. Unknown kinds are passed over and
// counted. One thread at a time: the writer's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/record/cupti/api.hpp"
#include "capture/record/store/record_tables.hpp"
#include "capture/record/store/recorded_batch.hpp"
#include "sim/base/counters.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

class ActivityDecoder {
 public:
  ActivityDecoder(const CuptiApi& api, RecordTables& tables);

  /// Appends what the first `valid` bytes hold to `batch`.
  void decode(std::uint8_t* buffer, std::size_t valid, RecordedBatch& batch);

  /// The device that records described: the one of most kernels so far.
  [[nodiscard]] const traces::DeviceInfo& device() const { return device_; }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }

 private:
  const CuptiApi& api_;
  RecordTables& tables_;
  traces::DeviceInfo device_;
  CounterSet counters_;
};

}  // namespace bubblesim::capture
