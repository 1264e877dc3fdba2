#include "capture/control/job_process.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

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

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

tl::expected<std::unique_ptr<JobProcess>, StartFault> JobProcess::start(
    const std::vector<std::string>& command, const Variables& environment) {
  std::unique_ptr<JobProcess> job(new JobProcess());
  ChildSettings settings;
  settings.mask = job->signals_.previous_mask();
  BUBBLESIM_ASSIGN_OR_RETURN(job->pid_, start_child(command, environment, settings));
  return job;
}

std::optional<ChildEnd> JobProcess::wait(Duration at_most) {
  const auto deadline = Clock::now() + at_most;
  const sigset_t awaited = awaited_signals();
  while (!end_) {
    end_ = reap_child(pid_);
    if (end_) break;
    const auto left = std::max(Duration{}, Duration{deadline - Clock::now()});
    const timespec time{left / std::chrono::seconds(1),
                        (left % std::chrono::seconds(1)).count()};
    siginfo_t info{};
    const int signal = sigtimedwait(&awaited, &info, &time);
    // A signal from the terminal (SI_KERNEL) went to the whole group, so the job has it already.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(pid_, signal);
    if (signal < 0 && errno == EAGAIN) {
      end_ = reap_child(pid_);
      break;
    }
  }
  return end_;
}

}  // namespace bubblesim::capture
