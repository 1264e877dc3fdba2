#include "capture/live/live_job.hpp"

#include <signal.h>

#include <utility>

namespace bubblesim::capture {

BlockedSignals::BlockedSignals() {
  expect_children();
  const sigset_t awaited = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &awaited, &mask_);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

Result<void> LiveJob::start(const std::string& line, const Variables& environment,
                            SpawnSettings settings) {
  settings.own_group = true;
  began_ = std::chrono::steady_clock::now();
  const auto pid = spawn_job({"/bin/sh", "-c", line}, environment, settings);
  if (!pid) return tl::make_unexpected(pid.error().error);
  pid_ = *pid;
  return {};
}

bool LiveJob::has_just_ended() {
  if (!runs() || !(end_ = reap_job(pid_))) return false;
  ran_ = std::chrono::steady_clock::now() - began_;
  return true;
}

void LiveJob::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

}  // namespace bubblesim::capture
