#include "sim/app/run_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bubblesim::app {
namespace {

constexpr auto kWatchTick = std::chrono::milliseconds{100};
constexpr double kTooEarly = 0.02;

}  // namespace

std::string progress_text(double share, Duration elapsed) {
  std::string text = fmt::format("{:.0f} %", std::floor(100 * std::clamp(share, 0.0, 1.0)));
  if (share < kTooEarly) return text;
  const auto seconds =
      static_cast<std::int64_t>(std::ceil(to_seconds(elapsed) * (1 - share) / share));
  return text + fmt::format(", about {}:{:02} left", seconds / 60, seconds % 60);
}

RunWatch::RunWatch(ProgressLine& line, std::size_t modes, Duration policy_bound)
    : line_(line), modes_(std::max<std::size_t>(1, modes)),
      timeout_(policy_bound, [this] { end_line(); }), thread_([this] { watch(); }) {}

RunWatch::~RunWatch() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  line_.clear();
}

void RunWatch::begin_mode(const std::string& name, run::RunOptions& options) {
  const std::scoped_lock lock(mutex_);
  ++mode_;
  name_ = name;
  before_ns_ = time_.done_ns;
  all_before_ns_ = time_.all_ns;
  options.time = &time_;
  options.stop = &stop_;
  options.when_stopped = run::WhenStopped::kKeepDone;
  options.progress = [this](const std::string& doing) {
    const std::scoped_lock told(mutex_);
    doing_ = doing;
  };
}

void RunWatch::end_line() {
  const std::scoped_lock lock(mutex_);
  line_.clear();
  stop_ = true;
}

// A mode counts as much as another; in it, simulated time does.
std::string RunWatch::text() {
  if (mode_ == 0) return {};
  // What parts of the job do alone is simulated before; it says little of how fast policies are.
  if (time_.all_ns == 0) begin_ = std::chrono::steady_clock::now();
  const double all = static_cast<double>(time_.all_ns - all_before_ns_);
  const double done = static_cast<double>(time_.done_ns - before_ns_);
  const double share = (static_cast<double>(mode_ - 1) + (all > 0 ? done / all : 0)) /
                       static_cast<double>(modes_);
  const auto elapsed =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin_);
  return fmt::format("{}: {}: {}", name_, progress_text(share, elapsed), doing_);
}

void RunWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kWatchTick, [this] { return over_; })) {
    if (signals_.count() > 0 && !stop_) {
      stop_ = true;
      line_.clear();
      std::fputs("bubblesim: interrupted: keeps what is done; once more to end at once\n", stderr);
    }
    if (!stop_) line_.show(text());
  }
}

}  // namespace bubblesim::app
