// Runs recordings of this process, one after the other; any thread starts, stops and queries them.
// Each runs on a thread of its own, which sets CUPTI up, decodes and writes.
//
// Only that thread waits for CUPTI: even if CUPTI takes seconds to start, or never returns, the
// recorder answers a status and accepts a stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "capture/protocol/capture_request.hpp"
#include "capture/record/process/buffer_exchange.hpp"
#include "capture/record/process/job_identity.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

enum class Stop : std::uint8_t { kNo, kAsked, kSignalled, kExiting };

/// What started the recording: faults of a start from the environment go to stderr, since no
/// command waits for an answer.
enum class StartOrigin : std::uint8_t { kSocket, kEnvironment };

struct RecorderSettings {
  JobIdentity job;
  std::string cupti;  ///< the libcupti to load; empty: search
  std::string cuda_home;  ///< where CUDA is installed; empty: not known
  /// Called on the recording's thread when CUPTI is set up.
  std::function<void()> session_began = [] {};
};

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

  const RecorderSettings settings;
  BufferExchange buffers;
  StatusBoard board;
  std::atomic<Stop> stop{Stop::kNo};
  std::atomic<bool> records{false};  ///< the recording has begun: a signal may end it
  std::atomic<int> file_descriptor{-1};  ///< of the open trace, for a forked child to close
};

/// Runs a whole recording, on the calling thread. The board's last state is kIdle or kFailed;
/// kScheduled if it returns true: iterations or a signal have ended the recording, and another one
/// is wanted.
bool run_recording(StartRequest request, StartOrigin origin, RecordingShare& share);

/// Lives as long as the process: CUPTI may call back after a recording has ended. Its destructor
/// is never run.
class Recorder {
 public:
  explicit Recorder(RecorderSettings settings);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = delete;

  /// Returns at once; status() reports the recording's progress. Faults: a recording is under way,
  /// or the system gives no thread. All signals must be blocked in the calling thread: the
  /// recording's thread inherits the mask.
  [[nodiscard]] Result<void> start(const StartRequest& request, StartOrigin origin);
  /// Returns at once. kAsked or kExiting; does nothing if no recording is under way.
  void stop(Stop reason) noexcept;
  /// Waits until no recording is under way. False: one still was after `longest`.
  [[nodiscard]] bool wait_idle(Duration longest) const noexcept;
  [[nodiscard]] RecorderStatus status() const { return share_.board.copy(); }
  /// Puts a mark into the trace. False: nothing records.
  [[nodiscard]] bool mark(const std::string& name);

  /// Called in a forked child: switches everything off and closes the file, touching no lock.
  /// Async-signal-safe.
  void abandon() noexcept;

 private:
  [[nodiscard]] bool take_turn() noexcept;
  void run(StartRequest request, StartOrigin origin) noexcept;
  void note_failure(const char* what) noexcept;

  RecordingShare share_;
  std::atomic<bool> active_{false};
  std::atomic<bool> exiting_{false};  ///< no recording starts any more
};

}  // namespace bubblesim::capture
