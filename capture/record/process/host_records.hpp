// What threads of the job said, as records of the trace. The writer's thread.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "capture/record/host/host_event.hpp"
#include "capture/record/store/record_tables.hpp"
#include "capture/record/store/recorded_batch.hpp"
#include "sim/base/counters.hpp"

namespace bubblesim::capture {

class HostRecords {
 public:
  /// `since`: when the recording began, on CUPTI's clock. Ranges that began before are left out.
  HostRecords(RecordTables& tables, TraceTime since) : tables_(tables), since_(since) {}

  void add(const HostEvent& event, RecordedBatch& batch);

  /// Iterations seen whole.
  [[nodiscard]] std::uint32_t iterations() const { return iterations_; }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }

 private:
  void add(const RangeEvent& event, RecordedBatch& batch);
  void add(const CollectiveEvent& event, RecordedBatch& batch);
  void add(const MarkEvent& event, RecordedBatch& batch);
  [[nodiscard]] ThreadId thread(std::uint64_t system_id);

  RecordTables& tables_;
  TraceTime since_;
  std::uint32_t iterations_ = 0;
  std::unordered_set<std::uint64_t> threads_;
  CounterSet counters_;
};

}  // namespace bubblesim::capture
