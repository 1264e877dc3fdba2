#include <gmock/gmock.h>

#include "capture/replay/job_runner.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using namespace testing;
using ::testing::ElementsAre, ::testing::IsEmpty;
using Us = std::chrono::microseconds;
using enum program::StepKind;

/// A service whose pass is one kernel of 10 us.
JobPlan service(const ServeMode& mode) {
  JobPlan plan = empty_plan(1);
  add_kernel(plan, 0, Us(10));
  plan.program.threads.push_back({"main", {launch(Us(0), Us(0), 0)}});
  plan.loop.reset();
  plan.serve = mode;
  plan.client = ClientId{1};
  return plan;
}

ServeMode online(std::vector<Duration> arrivals, std::uint32_t max_batch, Duration max_wait) {
  ServeMode mode;
  mode.online = true;
  mode.arrivals = std::move(arrivals);
  mode.batching.max_batch = max_batch;
  mode.batching.max_wait = max_wait;
  return mode;
}

TEST(JobService, OfflineThereIsAlwaysANextBatch) {
  ServeMode mode;
  mode.batching.max_batch = 4;
  mode.batching.requests_per_pass = 2;
  mode.batching.batch_cost = 0.5;
  Stage stage;
  stage.gate();
  const ReplayEnd end = stage.run(service(mode), Us(50));
  // Four requests are two passes' worth: 10 * (1 + 1 * 0.5) = 15 each.
  EXPECT_THAT(in_us(end.record.passes), ElementsAre(15, 30, 45));
  EXPECT_THAT(end.record.pass_requests, ElementsAre(4U, 4U, 4U));
  EXPECT_THAT(end.record.requests, IsEmpty());
  EXPECT_THAT(end.record.unfinished, IsEmpty());
  EXPECT_THAT(stage.gate().heard, ElementsAre("15 iteration of 15", "30 iteration of 15",
                                              "45 iteration of 15"));
  EXPECT_EQ(stage.iterations_told, 3U);
}

TEST(JobService, OnlineABatchStartsWhenItIsFullOrRipeAndTheProgramIdle) {
  Stage stage;
  const ReplayEnd end = stage.run(service(online({Us(0), Us(1), Us(2), Us(30)}, 2, Us(5))));
  // {0, 1} is full at 1; {2} is ripe at 7 and the program free at 21; {30} is ripe at 35.
  ASSERT_EQ(end.record.requests.size(), 4U);
  std::vector<std::int64_t> starts, ends;
  for (const RequestRecord& request : end.record.requests) {
    starts.push_back(in_us(request.start));
    ends.push_back(in_us(request.end));
  }
  EXPECT_THAT(starts, ElementsAre(1, 1, 21, 35));
  EXPECT_THAT(ends, ElementsAre(21, 21, 31, 45));  // a batch of two takes twice as long
}

TEST(JobService, AStopLeavesWhatHasArrivedUnfinished) {
  Stage stage;
  const ReplayEnd end = stage.run(service(online({Us(0), Us(3), Us(4), Us(90)}, 1, Us(0))), Us(15));
  EXPECT_EQ(end.record.requests.size(), 1U);
  EXPECT_THAT(in_us(end.record.unfinished), ElementsAre(3, 4));  // one of them under way
}

TEST(JobService, APassHasEndedWhenAllThreadsAndTheDeviceHave) {
  JobPlan plan = service(online({Us(0), Us(1)}, 1, Us(0)));
  add_kernel(plan, 0, Us(3));
  plan.program.threads.push_back({"second", {pause(Us(20)), launch(Us(0), Us(2), 1)}});
  Stage stage;
  // The second thread returns at 22, its kernel ends at 23; then the same again.
  EXPECT_THAT(in_us(stage.run(plan).record.passes), ElementsAre(23, 46));
}

TEST(RequestQueue, TakesAtMostABatchOfWhatHasArrived) {
  const ServeMode mode = online({Us(0), Us(0), Us(0), Us(9)}, 2, Us(5));
  RequestQueue queue(mode);
  EXPECT_EQ(queue.next_start(Us(0)), Us(0));
  EXPECT_EQ(queue.take(Us(0)), 2U);
  queue.served();
  EXPECT_EQ(queue.next_start(Us(1)), Us(5));   // the third is ripe
  EXPECT_EQ(queue.next_start(Us(20)), Us(20));
  EXPECT_EQ(queue.take(Us(5)), 1U);
  EXPECT_THAT(in_us(queue.unfinished(Us(8))), ElementsAre(0));
  queue.served();
  EXPECT_EQ(queue.next_start(Us(6)), Us(14));
  EXPECT_EQ(queue.take(Us(14)), 1U);
  EXPECT_EQ(queue.next_start(Us(20)), std::nullopt);
}

}  // namespace
}  // namespace bubblesim::capture
