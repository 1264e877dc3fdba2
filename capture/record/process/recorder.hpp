// Runs recordings of this process, one after the other; any thread starts, stops and queries them.
// Each runs on a thread of its own, which sets CUPTI up, decodes and writes.
//
// Only that thread waits for CUPTI: even if CUPTI takes seconds to start, or never returns, the
// recorder answers a status and accepts a stop.
#pragma once

#include <functional>
#include <string>

#include "capture/protocol/capture_request.hpp"
#include "capture/record/process/job_identity.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

enum class StopReason : std::uint8_t { kAsked, kExiting };

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

/// Lives as long as the process: CUPTI may call back after a recording has ended. Its destructor
/// is never run.
class Recorder {
 public:
  /// Throws std::bad_alloc.
  explicit Recorder(RecorderSettings settings);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = delete;

  /// Returns at once; status() reports the recording's progress. Faults: a recording is under way,
  /// or the system gives no thread. All signals must be blocked in the calling thread: the
  /// recording's thread inherits the mask.
  [[nodiscard]] Result<void> start(const StartRequest& request, StartOrigin origin);
  /// Returns at once. Does nothing if no recording is under way.
  void stop(StopReason reason) noexcept;
  /// Waits until no recording is under way. False: one still was after `longest`.
  [[nodiscard]] bool wait_idle(Duration longest) const noexcept;
  [[nodiscard]] RecorderStatus status() const;
  /// Puts a mark into the trace. False: nothing records.
  [[nodiscard]] bool mark(const std::string& name);

  /// Called in a forked child: switches everything off and closes the file, touching no lock.
  /// Async-signal-safe.
  void abandon() noexcept;

 private:
  [[nodiscard]] bool take_turn() noexcept;

  struct State;
  State* state_;
};

}  // namespace bubblesim::capture
