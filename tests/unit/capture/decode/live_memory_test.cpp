#include <gtest/gtest.h>

#include "capture/record/decode/known_devices.hpp"

namespace bubblesim::capture {
namespace {

using Outcome = LiveMemory::Outcome;

TEST(LiveMemory, IsWhatWasAllocatedAndNotReleased) {
  LiveMemory memory;
  EXPECT_EQ(memory.allocate(0x1000, 100), Outcome::kDone);
  EXPECT_EQ(memory.allocate(0x2000, 50), Outcome::kDone);
  EXPECT_EQ(memory.bytes(), 150U);
  EXPECT_EQ(memory.release(0x1000), Outcome::kDone);
  EXPECT_EQ(memory.bytes(), 50U);
}

TEST(LiveMemory, ReleasesOfEarlierMemoryChangeNothing) {
  LiveMemory memory;
  EXPECT_EQ(memory.release(0x3000), Outcome::kUnknown);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(LiveMemory, AnAddressThatIsAllocatedAgainWasReleased) {
  LiveMemory memory;
  EXPECT_EQ(memory.allocate(0x1000, 100), Outcome::kDone);
  EXPECT_EQ(memory.allocate(0x1000, 30), Outcome::kReplaced);
  EXPECT_EQ(memory.bytes(), 30U);
}

TEST(LiveMemory, FollowsAMillionAllocationsAndNoMore) {
  LiveMemory memory;
  for (std::uint64_t i = 0; i < 1U << 20U; ++i) ASSERT_EQ(memory.allocate(i, 1), Outcome::kDone);
  EXPECT_EQ(memory.allocate(1U << 20U, 1), Outcome::kFull);
  EXPECT_EQ(memory.bytes(), 1U << 20U);
}

}  // namespace
}  // namespace bubblesim::capture
