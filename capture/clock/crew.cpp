#include "capture/clock/crew.hpp"

#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::capture {
namespace {

/// A new thread joins within this time; later the machine counts as broken.
constexpr Duration kJoinPatience = std::chrono::seconds(60);

}  // namespace

struct Crew::Progress {
  std::atomic<std::size_t> ended{0};
  Bell bell;
};

Crew::Crew(HostClock& clock) : clock_(clock), progress_(std::make_unique<Progress>()) {
  progress_->bell.id = clock.bell_id();
}

Crew::~Crew() { wait(); }

void Crew::start(Turn turn, std::function<void()> work) {
  const std::uint32_t begun = clock_.parts_begun();
  threads_.emplace_back([this, turn, work = std::move(work)] {
    const auto part = clock_.join(turn);
    work();
    progress_->ended.fetch_add(1);
    clock_.ring(progress_->bell);
  });
  BUBBLESIM_CHECK(clock_.await_parts(begun + 1, kJoinPatience), "a thread did not start");
}

void Crew::wait() {
  while (true) {
    const std::uint32_t seen = progress_->bell.rings.load();
    if (progress_->ended.load() == threads_.size()) break;
    clock_.wait(progress_->bell, seen, HostTime::max());
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  progress_->ended = 0;
}

}  // namespace bubblesim::capture
