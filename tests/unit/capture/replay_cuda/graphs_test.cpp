// Launch calls of several operations.
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST_F(CudaBench, SeveralOperationsOfOneCallAreOneGraphLaunch) {
  const auto first = kernel(50us, 0);
  kernel(30us, 0);
  graph(first, 2);
  ASSERT_TRUE(open());
  const auto before = fake_driver::calls("cuLaunchKernel");
  for (std::uint64_t pass = 0; pass < 3; ++pass) launch(first, 2, pass);
  device_->wait_all();
  EXPECT_EQ(fake_driver::calls("cuGraphLaunch"), 3U);
  EXPECT_EQ(fake_driver::calls("cuLaunchKernel"), before);
  ASSERT_TRUE(close());
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    EXPECT_NEAR(double(listener_.of(0, pass).lasted()), 50'000, 1'000);
    EXPECT_NEAR(double(listener_.of(1, pass).lasted()), 30'000, 600);
    EXPECT_GE(listener_.of(1, pass).start, listener_.of(0, pass).end);
    if (pass == 0) continue;
    EXPECT_GE(listener_.of(0, pass).start, listener_.of(1, pass - 1).end);
  }
}

TEST_F(CudaBench, AGraphKeepsTheEdgesAndStreamsOfItsOperations) {
  const auto a = kernel(50us, 0);
  const auto b = kernel(50us, 1);
  const auto c = kernel(10us, 1, {a});
  const auto d = kernel(10us, 2, {c});
  graph(a, 4);
  ASSERT_TRUE(open());
  launch(a, 4);
  ASSERT_TRUE(close());
  EXPECT_LT(listener_.of(b).start, listener_.of(a).end);
  EXPECT_GE(listener_.of(c).start, listener_.of(a).end);
  EXPECT_GE(listener_.of(c).start, listener_.of(b).end);
  EXPECT_GE(listener_.of(d).start, listener_.of(c).end);
}

TEST_F(CudaBench, WhatComesBeforeAndAfterAGraphIsKeptInOrder) {
  const auto before = kernel(80us, 2);
  const auto a = kernel(20us, 0, {before});
  const auto b = kernel(20us, 1);
  const auto after = kernel(10us, 1);
  const auto beside = kernel(10us, 2, {b});
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(before);
  launch(a, 2);
  launch(after);
  launch(beside);
  ASSERT_TRUE(close());
  EXPECT_GE(listener_.of(a).start, listener_.of(before).end);
  EXPECT_GE(listener_.of(after).start, listener_.of(b).end);
  EXPECT_GE(listener_.of(beside).start, listener_.of(b).end);
}

TEST_F(CudaBench, AFactorReachesAGraphAndTheNextLaunchHasItsOwn) {
  const auto a = kernel(50us, 0);
  kernel(50us, 0);
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(a, 2, 0, 1);
  launch(a, 2, 1, 3);
  launch(a, 2, 2, 1);
  ASSERT_TRUE(close());
  EXPECT_NEAR(double(listener_.of(a, 0).lasted()), 50'000, 1'000);
  EXPECT_NEAR(double(listener_.of(a, 1).lasted()), 150'000, 3'000);
  EXPECT_NEAR(double(listener_.of(a, 2).lasted()), 50'000, 1'000);
  EXPECT_EQ(fake_driver::calls("cuMemsetD32Async"), 3U);  // at first, and the two changes
}

TEST_F(CudaBench, CopiesWithinAGraphAreRecordedToo) {
  const auto a = kernel(50us, 0);
  const auto b = copy(2'000'000, CopyPath::kHostToDevice, 0);
  graph(a, 2);
  ASSERT_TRUE(open());
  launch(a, 2);
  ASSERT_TRUE(close());
  EXPECT_EQ(listener_.of(b).lasted(), 2'000 + 1'000);
  EXPECT_GE(listener_.of(b).start, listener_.of(a).end);
}

TEST_F(CudaBench, AnUnknownRangeIsLaunchedOneByOne) {
  const auto a = kernel(50us, 0);
  kernel(50us, 0);
  ASSERT_TRUE(open());
  launch(a, 2);
  ASSERT_TRUE(close());
  EXPECT_EQ(fake_driver::calls("cuGraphLaunch"), 0U);
  EXPECT_EQ(listener_.told().size(), 2U);
}

}  // namespace
}  // namespace bubblesim::capture
