// One recording, from its request to the last chunk, on a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "capture/record/cupti/session.hpp"
#include "capture/record/decode/activity_decoder.hpp"
#include "capture/record/process/buffer_exchange.hpp"
#include "capture/record/process/host_link.hpp"
#include "capture/record/process/output_file.hpp"
#include "capture/record/process/recorder.hpp"
#include "capture/record/store/trace_store.hpp"

namespace bubblesim::capture {

/// A status that one thread writes and others read.
class StatusBoard {
 public:
  template <class Change>
  void edit(Change change) {
    const std::lock_guard lock(mutex_);
    change(status_);
  }
  [[nodiscard]] RecorderStatus copy() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  RecorderStatus status_;
};

/// State that a recording shares with the rest of the process; it outlives every recording.
struct RecordingShare {
  explicit RecordingShare(RecorderSettings wanted) : settings(std::move(wanted)) {}

  enum class Stop : std::uint8_t { kNo, kAsked, kSignalled, kExiting };

  const RecorderSettings settings;
  BufferExchange buffers;
  StatusBoard board;
  std::atomic<Stop> stop{Stop::kNo};
  std::atomic<bool> records{false};  ///< the recording has begun: a signal may end it
  std::atomic<int> file_descriptor{-1};  ///< of the open trace, for a forked child to close
};

class Recording {
 public:
  Recording(StartRequest request, StartOrigin origin, RecordingShare& share)
      : request_(std::move(request)), origin_(origin), share_(share) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  /// Runs the whole recording. The board's last state is kIdle or kFailed; kScheduled if it returns
  /// true: iterations or a signal have ended the recording, and another one is wanted.
  bool run();

 private:
  using Stop = RecordingShare::Stop;

  [[nodiscard]] bool stop_wanted() const { return share_.stop.load() != Stop::kNo; }
  /// Waits until `before` the start time. False: a stop came first.
  [[nodiscard]] bool wait_for_start(Duration before);
  /// Waits for the start time with CUPTI on; records from before it are left out.
  void wait_prepared();
  /// Waits, with CUPTI off, until the iterations before the first wanted one are about to run.
  /// False: a stop came first.
  [[nodiscard]] bool wait_for_iteration();
  /// Begins where the last iteration before the first wanted one ends, and counts later ones.
  void note_iteration(const HostEvent& event);
  /// Whole iterations since the first wanted one began.
  [[nodiscard]] std::uint32_t iterations() const;
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> open_file();
  void record();
  /// Called twice a second.
  void tick();
  /// Writes what CUPTI and the job's threads have handed over.
  void drain();
  void drain_buffers();
  void drain_host_events();
  void append();
  /// Whether records stay in memory: their beginning is not known yet, or the end writes them.
  [[nodiscard]] bool holds() const { return !begun_ || request_.last.has_value(); }
  void hold();
  /// Writes held records, but for those that the decoder leaves out as too early.
  void release();
  /// Counts records appended since the last call as kept in the file, or as lost.
  void settle(const Result<void>& written);
  /// After the first write that fails nothing more is written; the recording ends.
  void note_write(const Result<void>& written);
  void read_clock();
  /// If the system clock was set, writes that down at once, with the reading before.
  void watch_clock();
  /// Why the recording must end; empty: it goes on.
  [[nodiscard]] std::string reason_to_end() const;
  void close();
  void end_session();
  /// Takes in records of launched work that the GPU still does.
  void await_buffers();
  void end_file();
  void end_without_file();
  [[nodiscard]] Result<void> describe();
  void take_losses();
  [[nodiscard]] CounterSet all_counters() const;
  void publish();
  void fail_with(const std::string& message);
  bool stopped_early(const char* why);  ///< returns false
  void summarise() const;

  StartRequest request_;
  StartOrigin origin_;
  RecordingShare& share_;
  std::optional<CuptiApi> api_;
  std::optional<RecordingFile> file_;
  std::optional<TraceStore> store_;
  std::optional<ActivityDecoder> decoder_;
  std::optional<HostRecords> host_;
  std::unique_ptr<CuptiSession> session_;
  RecordedBatch batch_;
  std::deque<RecordedBatch> held_;
  std::uint64_t held_records_ = 0;
  bool repeats_ = false;        ///< what run() returns
  bool begun_ = true;           ///< the first wanted iteration has begun
  TraceTime iteration_end_ = TraceTime::min();  ///< end of the latest iteration, until then
  std::optional<std::int64_t> first_collective_;
  std::int64_t last_collective_ = 0;
  CounterSet counters_;
  std::string fault_;           ///< of the recording, once it runs
  bool writable_ = true;        ///< every write so far succeeded
  std::string described_;       ///< the device's name in the file
  std::string reduced_;
  std::int64_t began_ns_ = 0;   ///< CLOCK_MONOTONIC
  std::int64_t ended_ns_ = 0;
  std::int64_t next_clock_ns_ = 0;
  traces::ClockPair seen_clock_;
  // Counts of records about the job:
  std::uint64_t pending_ = 0;   ///< appended; the store may still hold them
  std::uint64_t kept_ = 0;      ///< in the file
  std::uint64_t lost_ = 0;
};

}  // namespace bubblesim::capture
