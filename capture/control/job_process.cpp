#include "capture/control/job_process.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

namespace bubblesim::capture {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

tl::expected<std::unique_ptr<JobProcess>, StartFault> JobProcess::start(
    const std::vector<std::string>& command, const Variables& environment) {
  expect_children();
  const sigset_t awaited = awaited_signals();
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &awaited, &mask);
  SpawnSettings settings;
  settings.mask = mask;  // the job gets the one that this thread had
  const auto pid = spawn_job(command, environment, settings);
  if (!pid) {
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    return tl::make_unexpected(pid.error());
  }
  return std::unique_ptr<JobProcess>(new JobProcess(*pid, mask));
}

JobProcess::~JobProcess() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

std::optional<JobEnd> JobProcess::wait(Duration at_most) {
  const auto deadline = Clock::now() + at_most;
  const sigset_t awaited = awaited_signals();
  while (!end_) {
    end_ = reap_job(pid_);
    if (end_) break;
    const auto left = std::max(Duration{}, Duration{deadline - Clock::now()});
    const timespec time{left / std::chrono::seconds(1),
                        (left % std::chrono::seconds(1)).count()};
    siginfo_t info{};
    const int signal = sigtimedwait(&awaited, &info, &time);
    // From the terminal (SI_KERNEL) it went to the whole group, so to the job too.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(pid_, signal);
    if (signal < 0 && errno == EAGAIN) {
      end_ = reap_job(pid_);
      break;
    }
  }
  return end_;
}

}  // namespace bubblesim::capture
