#include "capture/live/live_job.hpp"

#include <signal.h>

#include <utility>

namespace bubblesim::capture {

Result<void> LiveJob::start(const std::string& line, const Variables& environment,
                            ChildSettings settings) {
  settings.group = ChildGroup::kOwn;
  began_ = std::chrono::steady_clock::now();
  const auto pid = start_child({"/bin/sh", "-c", line}, environment, settings);
  if (!pid) return tl::make_unexpected(pid.error().error);
  pid_ = *pid;
  return {};
}

bool LiveJob::has_just_ended() {
  if (!runs() || !(end_ = reap_child(pid_))) return false;
  ran_ = std::chrono::steady_clock::now() - began_;
  return true;
}

void LiveJob::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

}  // namespace bubblesim::capture
