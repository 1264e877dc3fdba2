#include "capture/control/blocked_signals.hpp"

#include <initializer_list>

namespace bubblesim::capture {

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

BlockedSignals::BlockedSignals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, nullptr);
  const sigset_t awaited = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &awaited, &mask_);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

}  // namespace bubblesim::capture
