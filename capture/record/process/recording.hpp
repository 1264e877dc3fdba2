// One recording, from its request to the last chunk, on a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "capture/record/process/buffer_exchange.hpp"
#include "capture/record/process/recorder.hpp"

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

/// Runs a whole recording, on the calling thread. The board's last state is kIdle or kFailed;
/// kScheduled if it returns true: iterations or a signal have ended the recording, and another one
/// is wanted.
bool run_recording(StartRequest request, StartOrigin origin, RecordingShare& share);

}  // namespace bubblesim::capture
