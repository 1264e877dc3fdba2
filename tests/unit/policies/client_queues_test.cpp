#include "policies/client_queues.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

policy::LaunchInfo launch(std::uint64_t number, std::uint32_t operations = 1) {
  policy::LaunchInfo info;
  info.client = ClientId{1};
  info.launch = number;
  info.operations = operations;
  info.blocks = 10 * number;
  return info;
}

TEST(launch_queue, keeps_the_oldest_outstanding_launch_in_front) {
  LaunchQueue queue;
  for (std::uint64_t number = 1; number <= 3; ++number) queue.push(launch(number));
  EXPECT_FALSE(queue.complete(2));  // another stream was faster
  EXPECT_EQ(queue.front().launch, 1u);
  EXPECT_TRUE(queue.complete(1));
  EXPECT_EQ(queue.front().launch, 3u);
  EXPECT_EQ(queue.front().blocks, 30u);
  EXPECT_TRUE(queue.complete(3));
  EXPECT_TRUE(queue.empty());
}

TEST(launch_queue, ends_a_launch_with_its_last_operation) {
  LaunchQueue queue;
  queue.push(launch(5, 3));
  EXPECT_EQ(queue.operations(), 3u);
  EXPECT_FALSE(queue.complete(5));
  EXPECT_FALSE(queue.complete(5));
  EXPECT_TRUE(queue.complete(5));
  EXPECT_TRUE(queue.empty());
}

TEST(launch_queue, ignores_launches_it_does_not_have) {
  LaunchQueue queue;
  EXPECT_FALSE(queue.complete(1));
  queue.push(launch(4));
  queue.push(launch(6));
  for (const std::uint64_t number : {1u, 5u, 7u}) EXPECT_FALSE(queue.complete(number));
  EXPECT_EQ(queue.operations(), 2u);
  queue.push(launch(7, 0));  // nothing of it will end
  EXPECT_EQ(queue.size(), 2u);
}

/// It holds 16 at first; 40 outstanding, after 10 that went through.
TEST(launch_queue, grows_and_keeps_the_order) {
  LaunchQueue queue;
  for (std::uint64_t number = 1; number <= 10; ++number) {
    queue.push(launch(number));
    queue.complete(number);
  }
  for (std::uint64_t number = 11; number <= 50; ++number) queue.push(launch(number));
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(queue[i].launch, 11 + i);
  for (std::uint64_t number = 50; number > 11; --number) queue.complete(number);
  EXPECT_EQ(queue.operations(), 1u);
  EXPECT_EQ(queue.front().launch, 11u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(outstanding_operations, ignore_ends_after_death) {
  OutstandingOperations outstanding(2);
  outstanding.passed(launch(1, 2));
  EXPECT_EQ(outstanding.count_of(ClientId{1}), 2u);
  outstanding.ended(ClientId{1});
  EXPECT_FALSE(outstanding.idle(ClientId{1}));
  outstanding.gone(ClientId{1});
  outstanding.ended(ClientId{1});
  EXPECT_TRUE(outstanding.idle(ClientId{1}));
}

}  // namespace
}  // namespace bubblesim::policies
