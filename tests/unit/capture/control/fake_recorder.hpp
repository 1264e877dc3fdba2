// A recorder inside the test's process: it speaks the real protocol on the real addresses and
// answers as the test says.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture::testing {

/// Gives the reply to a message; an empty one is never sent.
using Answer = std::function<std::string(const std::string& message)>;

class FakeRecorder {
 public:
  /// Listens at once. `folder`: for a path socket, else an abstract one; `pid`: in its name.
  explicit FakeRecorder(Answer answer, const std::string& folder = {}, pid_t pid = getpid());
  ~FakeRecorder();
  FakeRecorder(const FakeRecorder&) = delete;
  FakeRecorder& operator=(const FakeRecorder&) = delete;

  /// Every message so far.
  [[nodiscard]] std::vector<std::string> heard() const;

 private:
  void serve();
  Answer answer_;
  ControlAddress address_;
  int listener_ = -1;
  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

/// The status of a recorder of this process.
[[nodiscard]] RecorderStatus own_status(RecorderState state);
/// Answers every message with that status.
[[nodiscard]] Answer always(const RecorderStatus& status);

/// Behaves like the real recorder: start and stop change its state; `status.output` names a file
/// only once it is recording.
[[nodiscard]] Answer obedient();

}  // namespace bubblesim::capture::testing
