#include "capture/rig/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bubblesim::capture {
namespace {

constexpr auto kWatchPeriod = std::chrono::milliseconds(20);

bool gets_ready(const WorkerStatus& seat) {
  return seat.state == WorkerState::kStarting || seat.state == WorkerState::kPreparing;
}

std::uint64_t progress_of(const WorkerStatus& seat) {
  return seat.progress + static_cast<std::uint64_t>(seat.state);
}

}  // namespace

std::uint64_t progress_among(std::span<const WorkerStatus> own,
                             std::span<const WorkerStatus> others) {
  std::uint64_t progress = 0;
  for (const WorkerStatus& seat : own) progress += progress_of(seat);
  if (std::ranges::none_of(own, gets_ready)) return progress;
  for (const WorkerStatus& seat : others) {
    if (gets_ready(seat)) progress += progress_of(seat);
  }
  return progress;
}

Watchdog::Watchdog(std::vector<Watched> watched, Duration patience)
    : watched_(std::move(watched)), patience_(patience), states_(watched_.size()) {
  for (State& state : states_) state.since = std::chrono::steady_clock::now();
  thread_ = std::thread([this] {
    while (!ended_) {
      std::this_thread::sleep_for(kWatchPeriod);
      look();
    }
  });
}

Watchdog::~Watchdog() {
  ended_ = true;
  thread_.join();
}

bool Watchdog::killed(std::size_t index) const {
  const std::scoped_lock lock(mutex_);
  return states_[index].killed;
}

void Watchdog::look() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    State& state = states_[i];
    const std::uint64_t progress = watched_[i].progress();
    if (!watched_[i].busy() || progress != state.progress) {
      state.progress = progress;
      state.since = now;
    } else if (now - state.since > patience_ && !state.killed) {
      state.killed = true;
      watched_[i].kill();
    }
  }
}

}  // namespace bubblesim::capture
