// The recorder's end of the control socket: takes commands, answers each with a status.
//
// Only the process's own user and root are heard (SO_PEERCRED). A peer that does not read its
// answers, or sends nonsense, is cut off, so that no peer can block the server.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "capture/protocol/capture_request.hpp"
#include "capture/record/process/recorder.hpp"

namespace bubblesim::capture {

class ControlServer {
 public:
  /// `folder`: for a path socket beside the abstract one; empty: none. `recorder` outlives it.
  ControlServer(Recorder& recorder, std::string folder);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  /// Listens; true if at least one address is open. If another process has the abstract address
  /// (two containers that share a network but not their process ids) only the path socket listens.
  [[nodiscard]] bool listen();
  /// Serves until close_descriptors() or a fault of the system.
  void serve();
  /// Removes the path socket's file. Async-signal-safe.
  void remove_path() noexcept;
  /// Called in a forked child: closes the child's copies of the descriptors. Async-signal-safe.
  void close_descriptors() noexcept;

 private:
  /// Slots of descriptors: the epoll, listeners, peers. Atomic, for a fork may come at any time.
  static constexpr std::size_t kPeers = 16;
  static constexpr std::size_t kListeners = 2;
  static constexpr std::size_t kSlots = 1 + kListeners + kPeers;

  [[nodiscard]] bool open_listener(std::size_t slot, const ControlAddress& address);
  [[nodiscard]] bool watch(int descriptor, std::size_t slot) const;
  void accept_from(std::size_t listener);
  /// A free slot; else that of a peer that may not command, or of the peer silent for longest.
  [[nodiscard]] std::size_t room_for_peer() const;
  void hear(std::size_t slot);
  void drop(std::size_t slot) noexcept;
  [[nodiscard]] RecorderStatus answer(std::string_view message);
  [[nodiscard]] RecorderStatus obey(const ControlCommand& command);

  struct Peer {
    bool allowed = false;
    std::uint64_t heard = 0;  ///< by clock_
  };

  Recorder& recorder_;
  std::string folder_;
  ControlAddress path_;  ///< written before the descriptor of its listener is
  std::array<std::atomic<int>, kSlots> descriptors_;
  std::array<Peer, kSlots> peers_{};
  std::uint64_t clock_ = 0;  ///< counts messages and connections
  std::string buffer_;
};

}  // namespace bubblesim::capture
