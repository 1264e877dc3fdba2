// The recorder's side of capture/record/host/host_event.hpp: switches events of the job's threads
// on and off, takes them in, and makes records of them. One recording at a time.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "capture/record/cupti/api.hpp"
#include "capture/record/host/host_event.hpp"
#include "capture/record/store/record_tables.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

// Reads CUPTI's clock beside the host's.

struct ClockReading {
  traces::ClockPair pair;
  /// CUPTI's clock minus CLOCK_REALTIME; 0 where they differ by less than the reading took.
  Duration offset{};
};

/// The tightest of a few readings. Without cuptiGetTimestamp: CLOCK_REALTIME, which is CUPTI's
/// base on Linux.
[[nodiscard]] ClockReading read_clocks(const CuptiApi& api) noexcept;

/// CLOCK_REALTIME and CLOCK_MONOTONIC, in nanoseconds.
[[nodiscard]] std::int64_t realtime_ns() noexcept;
[[nodiscard]] std::int64_t monotonic_ns() noexcept;

/// The queue, made at its first use. It lives as long as the process, since a thread of the job may
/// hold a reference at any time. Throws std::bad_alloc.
[[nodiscard]] HostEventQueue& host_queue();
/// Accepts events from now on. `offset`: CUPTI's clock minus CLOCK_REALTIME.
void open_host_link(Duration offset) noexcept;
void adjust_host_link(Duration offset) noexcept;
/// Ignores events from now on. Async-signal-safe.
void close_host_link() noexcept;

// Makes events of the job's threads into records of the trace. Used by the writer's thread.

class HostRecords {
 public:
  /// `since`: when the recording began, on CUPTI's clock. Ranges that began before are left out.
  HostRecords(RecordTables& tables, TraceTime since) : tables_(tables), since_(since) {}

  void add(const HostEvent& event, RecordedBatch& batch);
  /// Treats the recording as begun at `since`.
  void begin_at(TraceTime since);

  /// Whole iterations of the thread that marks most of them.
  [[nodiscard]] std::uint32_t iterations() const { return iterations_; }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }

 private:
  void add(const RangeEvent& event, RecordedBatch& batch);
  void add(const CollectiveEvent& event, RecordedBatch& batch);
  void add(const MarkEvent& event, RecordedBatch& batch);
  void add(const NodeCopyEvent& event, RecordedBatch& batch);
  void add(const StreamValueEvent&, RecordedBatch&) {}  // the decoder knows its device
  [[nodiscard]] ThreadId thread(std::uint64_t system_id);

  RecordTables& tables_;
  TraceTime since_;
  std::uint32_t iterations_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> threads_;  ///< iterations by gettid()
  CounterSet counters_;
};

}  // namespace bubblesim::capture
