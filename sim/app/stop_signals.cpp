#include "sim/app/stop_signals.hpp"

#include <unistd.h>

#include <atomic>

#include "sim/app/app.hpp"

namespace bubblesim::app {
namespace {

// A handler is handed nothing: what it counts must be reachable without an object.
std::atomic<int> signal_count{0};
std::atomic<int> allowed_count{1};  // the next signal ends the process
std::atomic<bool> signalled{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void count_signal(int) noexcept {
  if (++signal_count > allowed_count) _exit(kExitInterrupted);
  signalled = true;
}

}  // namespace

StopSignals::StopSignals(SecondSignal second) {
  signal_count = 0;
  allowed_count = second == SecondSignal::kEnds ? 1 : 2;
  signalled = false;
  struct sigaction action{};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;  // stores are written meanwhile
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    const bool nohup = kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;
    if (!nohup) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::count() const { return signal_count; }

const std::atomic<bool>& StopSignals::stop() const { return signalled; }

}  // namespace bubblesim::app
