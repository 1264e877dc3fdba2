// The signals that a program which waits for its jobs handles itself.
#pragma once

#include <csignal>

namespace bubblesim::capture {

/// The signals that jobs are sent on (SIGINT, SIGTERM, SIGHUP, SIGQUIT), and SIGCHLD.
[[nodiscard]] sigset_t awaited_signals();

/// awaited_signals(), blocked for the calling thread as long as this lives; threads started
/// meanwhile inherit that. SIGCHLD gets its standard action: an ignored one, which may be
/// inherited, would take children's exit codes from us.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// The thread's mask as it was: a job's.
  [[nodiscard]] const sigset_t& previous_mask() const { return mask_; }

 private:
  sigset_t mask_{};
};

}  // namespace bubblesim::capture
