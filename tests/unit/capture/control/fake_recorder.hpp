// A recorder inside the test's process: it speaks the real protocol on the real addresses and
// answers as the test says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture::testing {

/// Gives the reply to a message; an empty one is never sent.
using Answer = std::function<std::string(const std::string& message)>;

constexpr std::chrono::milliseconds kLook{10};

inline bool readable(int descriptor) {
  pollfd waited{descriptor, POLLIN, 0};
  return poll(&waited, 1, static_cast<int>(kLook.count())) > 0;
}

class FakeRecorder {
 public:
  /// Listens at once. `folder`: for a path socket, else an abstract one; `pid`: in its name.
  explicit FakeRecorder(Answer answer, const std::string& folder = {}, pid_t pid = getpid())
      : answer_(std::move(answer)),
        address_(folder.empty() ? abstract_address(geteuid(), pid)
                                : path_address(folder, geteuid(), pid).value()) {
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto* place = reinterpret_cast<const sockaddr*>(&address_.address);
    if (listener_ < 0 || bind(listener_, place, address_.length) != 0 ||
        listen(listener_, 4) != 0) {
      std::abort();
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeRecorder() {
    over_ = true;
    thread_.join();
    close(listener_);
    if (address_.address.sun_path[0] != '\0') unlink(address_.address.sun_path);
  }
  FakeRecorder(const FakeRecorder&) = delete;
  FakeRecorder& operator=(const FakeRecorder&) = delete;

  /// Every message so far.
  [[nodiscard]] std::vector<std::string> heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void serve() {
    std::vector<int> peers;
    while (!over_) {
      if (readable(listener_)) peers.push_back(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
      for (int& peer : peers) {
        if (peer < 0 || !readable(peer)) continue;
        std::string message(kMaxMessageBytes, '\0');
        const ssize_t length = recv(peer, message.data(), message.size(), 0);
        std::string answer;
        if (length > 0) {
          message.resize(static_cast<std::size_t>(length));
          {
            const std::lock_guard lock(mutex_);
            heard_.push_back(message);
          }
          answer = answer_(message);
          if (answer.empty()) continue;
        }
        if (length <= 0 || answer == "(close)") {
          close(peer);
          peer = -1;
          continue;
        }
        if (send(peer, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
      }
    }
    for (const int peer : peers) {
      if (peer >= 0) close(peer);
    }
  }

  Answer answer_;
  ControlAddress address_;
  int listener_ = -1;
  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

/// The status of a recorder of this process.
inline RecorderStatus own_status(RecorderState state) {
  RecorderStatus status;
  status.state = state;
  status.pid = getpid();
  status.executable = "python3";
  return status;
}

/// Answers every message with that status.
inline Answer always(const RecorderStatus& status) {
  return [text = encode(status)](const std::string&) { return text; };
}

/// Behaves like the real recorder: start and stop change its state; `status.output` names a file
/// only once it is recording.
inline Answer obedient() {
  auto status = std::make_shared<RecorderStatus>(own_status(RecorderState::kIdle));
  return [status](const std::string& message) {
    const auto command = decode_command(message);
    if (!command) {
      status->message = command.error().text();
    } else if (command->kind == ControlCommand::Kind::kStart) {
      status->state = RecorderState::kRecording;
      status->output = command->start.output + "/rank0.recording.btr";
    } else if (command->kind == ControlCommand::Kind::kStop) {
      status->state = RecorderState::kIdle;
    }
    return encode(*status);
  };
}

}  // namespace bubblesim::capture::testing
