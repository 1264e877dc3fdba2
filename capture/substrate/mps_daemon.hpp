// An MPS control daemon of a rig's own: private folders, started for one run and ended after it.
//
// A daemon already running is never used or ended: notes() names one that listens at
// CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps. No GPU setting is changed: MPS works in compute mode
// Default; EXCLUSIVE_PROCESS, which its manual recommends, is left to the owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "capture/control/job_environment.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

struct MpsSettings {
  std::string folder;      ///< exists; the daemon's two folders are made in it and removed again
  Variables environment;   ///< of the calling program; PATH says where the daemon is
  std::string device;      ///< CUDA_VISIBLE_DEVICES of the daemon: UUID or index; empty: inherited
  Duration patience = std::chrono::seconds(10);  ///< machine's time, for each of its answers
};

class MpsDaemon {
 public:
  /// Returns when the daemon answers. Faults: no nvidia-cuda-mps-control in PATH; it could not
  /// start or does not answer (with its output and log); a folder too long for a socket's address.
  [[nodiscard]] static Result<std::unique_ptr<MpsDaemon>> start(const MpsSettings& settings);
  /// Quits; ignores faults.
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  /// CUDA_MPS_PIPE_DIRECTORY of its clients (process_environment.hpp).
  [[nodiscard]] const std::string& pipe_directory() const { return pipe_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// The daemon's log so far: control.log and server.log.
  [[nodiscard]] std::string log() const;

  /// Precondition: clients have ended. Tells the daemon to quit and waits; a daemon that does not
  /// end is killed, with its servers, which is a fault. Further calls do nothing.
  [[nodiscard]] Result<void> quit();

 private:
  MpsDaemon() = default;
  [[nodiscard]] Result<void> launch();
  [[nodiscard]] Result<void> probe() const;
  void note_others();
  void remove_folders() const;
  [[nodiscard]] bool gone_within(Duration patience) const;

  MpsSettings settings_;
  std::string program_;
  std::string pipe_;
  std::string logs_;
  Variables environment_;       ///< of the daemon and of programs that talk to it
  std::vector<std::string> notes_;
  pid_t pid_ = 0;               ///< of the daemon; 0: not known
  std::string started_;         ///< its start time in the kernel, since a pid may be reused
  bool running_ = false;
};

}  // namespace bubblesim::capture
