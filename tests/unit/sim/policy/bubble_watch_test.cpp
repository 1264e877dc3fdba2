#include "sim/policy/session/bubble_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

/// Bubbles after operations 0 (60 us), 2 (500 us) and 3 (9 us).
class BubbleWatchTest : public ::testing::Test {
 protected:
  void start(WorkKind kind = WorkKind::kKernel) {
    if (watch_.op_started(kind)) told_ += "end ";
  }
  void finish(std::uint32_t op, WorkKind kind = WorkKind::kKernel) {
    const BubbleInfo* bubble = watch_.op_finished(op, kind);
    if (bubble != nullptr) told_ += std::to_string(bubble->expected / 1us) + " ";
  }

  const std::vector<MeasuredBubble> bubbles_{
      {0, {60us, {}, true}}, {2, {500us, {}, false}}, {3, {9us, {}, false}}};
  BubbleWatch watch_{bubbles_};
  std::string told_;
};

TEST_F(BubbleWatchTest, ABubbleLastsFromItsOperationToTheNextKernel) {
  start();
  finish(0);  // 60 us
  start();    // ends it
  finish(1);  // not in the table
  start();    // nothing to end
  finish(2);  // 500 us
  start();    // ends it
  EXPECT_EQ(told_, "60 end 500 end ");
}

TEST_F(BubbleWatchTest, NoneBeginsWhileAnotherKernelRuns) {
  start();
  start();
  finish(0);  // one still runs
  finish(1);  // the last one, not in the table
  EXPECT_EQ(told_, "");
}

TEST_F(BubbleWatchTest, CollectivesAndCopiesNeitherBeginNorEndOne) {
  start();
  start(WorkKind::kCollective);
  finish(0);  // 60 us: the collective does not count
  start(WorkKind::kCopy);
  start(WorkKind::kMemset);
  finish(2, WorkKind::kCollective);
  finish(3, WorkKind::kCopy);
  EXPECT_EQ(told_, "60 ");
  start();
  EXPECT_EQ(told_, "60 end ");
}

// Without the start of operation 0 the count would be one too low after its end, and operation 2
// would begin its bubble while operation 3 runs.
TEST_F(BubbleWatchTest, ALostStartDoesNotUpsetTheCount) {
  finish(0);
  start();
  start();
  finish(2);
  finish(3);
  EXPECT_EQ(told_, "60 end 9 ");
}

}  // namespace
}  // namespace bubblesim::policy
