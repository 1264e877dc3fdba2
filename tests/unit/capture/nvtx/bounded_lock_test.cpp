// A holder that is preempted is waited for; one that never comes back is not, and once only.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "capture/record/nvtx/thread_ranges.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST(BoundedLock, WaitsForAHolderThatIsPreempted) {
  BoundedLock lock;
  std::atomic<bool> is_held{false};
  std::thread holder([&] {
    const BoundedLock::Held held(lock);
    is_held = true;
    std::this_thread::sleep_for(10ms);
  });
  while (!is_held) std::this_thread::yield();
  EXPECT_TRUE(BoundedLock::Held(lock));
  holder.join();
}

TEST(BoundedLock, IsAbandonedUntilItsHolderLetsGo) {
  BoundedLock lock;
  std::optional<BoundedLock::Held> holder(std::in_place, lock);
  for (int i = 0; i < 10'000; ++i) {  // a sixth of an hour, if each of them waited
    ASSERT_FALSE(BoundedLock::Held(lock));
  }
  holder.reset();
  EXPECT_TRUE(BoundedLock::Held(lock));
}

}  // namespace
}  // namespace bubblesim::capture
