// Bubbles of a two-stage pipeline, measured alone. Times in us.
#include "sim/schedule/bubble_table.hpp"

#include <gtest/gtest.h>

#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::schedule {
namespace {

using workload::JobProgram, workload::ProgramMaker, workload::plain_gpu, workload::us;

std::string text(const BubbleTable& table) {
  std::string result;
  for (const policy::MeasuredBubble& bubble : table) {
    result += std::to_string(bubble.after_op) + ": " +
              std::to_string(bubble.info.expected.count() / 1000) +
              (bubble.info.pipeline ? " pipeline\n" : "\n");
  }
  return result;
}

/// Stage 0: forward of 300, sends (10), receives what stage 1 sends (10), backward of 600.
/// Stage 1: receives, forward and backward of 300 + 600, sends.
///
///   0: F [0, 300]  send [300, 310]  recv [310, 1220]                    B [1220, 1820]
///   1: recv [0, 310]  F [310, 610]  B [610, 1210]  send [1210, 1220]
///
/// Each stage begins its next pass when its last operation has ended: stage 0 at 1820, stage 1 at
/// 1220. In the second pass, stage 1's receive waits from 1220 until stage 0 sends at 2120.
JobProgram pipeline(bool point_to_point) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker()
                          .kernel(0, 300).collective(0, 10, 0).collective(0, 10, 1).kernel(0, 600)
                          .wait_stream(0, 0).end().program());
  job.ranks.push_back(ProgramMaker()
                          .rank(1).collective(0, 10, 0).kernel(0, 300).kernel(0, 600)
                          .collective(0, 10, 1).wait_stream(0, 0).end().program());
  job.collectives = {{2, point_to_point, 0}, {2, point_to_point, 0}};
  return job;
}

// Stage 0 is without work after op 0, from 300 to 1220. Stage 1 after op 2, from 1210 to the
// next pass's forward: its receive ends at 2120 + 10, so 920 too.
TEST(BubbleTable, EachStagesBubblesHaveTheOperationBeforeThemAndTheirLength) {
  const auto tables = measure_bubbles(pipeline(true), plain_gpu());
  ASSERT_TRUE(tables) << tables.error().text();
  ASSERT_EQ(tables->size(), 2U);
  EXPECT_EQ(text((*tables)[0]), "0: 920 pipeline\n");
  EXPECT_EQ(text((*tables)[1]), "2: 920 pipeline\n");
}

TEST(BubbleTable, AWaitForACollectiveOfAllIsNoPipelineBubble) {
  const auto tables = measure_bubbles(pipeline(false), plain_gpu());
  ASSERT_TRUE(tables);
  EXPECT_EQ(text((*tables)[0]), "0: 920\n");
}

// Rank 0 sends to rank 2 from 0 to 900, and exchanges with rank 1 from 300 to 500, between its two
// kernels. It waits for the exchange; that a send is under way makes it no wait for the pipeline.
TEST(BubbleTable, AnExchangeDuringASendIsNoPipelineWait) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker(2)
                          .kernel(0, 300).collective(0, 900, 0, 1)
                          .collective(0, 200, 1).kernel(0, 600)
                          .wait_device(0, 0).end().program());
  job.ranks.push_back(ProgramMaker()
                          .rank(1).kernel(0, 300).collective(0, 200, 1).kernel(0, 600)
                          .wait_stream(0, 0).end().program());
  job.ranks.push_back(
      ProgramMaker().rank(2).collective(0, 900, 0).wait_stream(0, 0).end().program());
  job.collectives = {{2, true, 0}, {2, false, 0}};
  const auto tables = measure_bubbles(job, plain_gpu());
  ASSERT_TRUE(tables) << tables.error().text();
  EXPECT_EQ(text((*tables)[0]), "0: 200\n");
}

// Both stages end with an all-reduce over both (the gradients' norm): whoever is early waits there
// for its peer. A third rank, which sends nothing, shares another one with stage 0.
TEST(BubbleTable, ACollectiveOfRanksThatSendsConnectIsAPipelineWait) {
  JobProgram job = pipeline(true);
  job.collectives.push_back({2, false, 0});
  job.collectives.push_back({2, false, 0});
  job.ranks[0] = ProgramMaker().collective(0, 10, 0).collective(0, 10, 2).collective(0, 10, 3)
                     .wait_stream(0, 0).end().program();
  job.ranks[1] = ProgramMaker().rank(1).collective(0, 10, 0).collective(0, 10, 2)
                     .wait_stream(0, 0).end().program();
  job.ranks.push_back(
      ProgramMaker().rank(2).collective(0, 10, 3).wait_stream(0, 0).end().program());
  EXPECT_EQ(pipeline_collectives(job), (std::vector<bool>{true, true, true, false}));
}

// The host launches a pass of 800 in 20 and waits for nothing: its second pass is over before the
// first kernel has ended. The device's second one has both bubbles.
TEST(BubbleTable, OfAHostThatRunsAheadTheDevicesSecondPassIsMeasured) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker()
                          .kernel(5, 300).collective(5, 100, 0).kernel(5, 300)
                          .collective(5, 100, 0).end().program());
  job.collectives = {{1, false, 0}};
  const auto tables = measure_bubbles(job, plain_gpu());
  ASSERT_TRUE(tables) << tables.error().text();
  EXPECT_EQ(text((*tables)[0]), "0: 100\n2: 100\n");
}

// Folded replicas: one participant, and no pipeline.
TEST(BubbleTable, AFoldedAllReduceIsACollectiveAndNoPipelineWait) {
  JobProgram job;
  job.ranks.push_back(
      ProgramMaker().kernel(0, 50).collective(0, 300, 0).wait_stream(0, 0).end().program());
  job.collectives = {{1, false, 0}};
  const auto tables = measure_bubbles(job, plain_gpu());
  ASSERT_TRUE(tables);
  EXPECT_EQ(text((*tables)[0]), "0: 300\n");
}

// Of 100 bytes: 30 from op 0 on, 80 from op 1, 50 from op 3. Bubbles after op 0 (30 held, then 80:
// the step after has not begun) and after op 2 (80, then 50), and at the pass's end (50, then 30).
TEST(BubbleTable, FreeMemoryIsWhatNeitherStepAroundABubbleHolds) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker()
                          .kernel(0, 50).kernel(250, 50).kernel(50, 50).kernel(250, 50).end(250)
                          .program());
  job.ranks[0].memory = {{0, 30}, {1, 80}, {3, 50}};
  hardware::GpuSpec gpu = plain_gpu();
  gpu.memory = Bytes{100};
  const auto tables = measure_bubbles(job, gpu);
  ASSERT_TRUE(tables);
  std::vector<std::uint64_t> free;
  for (const policy::MeasuredBubble& bubble : (*tables)[0]) {
    free.push_back(bubble.info.free_memory.value);
  }
  EXPECT_EQ(text((*tables)[0]), "0: 200\n2: 200\n3: 200\n");
  EXPECT_EQ(free, (std::vector<std::uint64_t>{70, 50, 70}));
}

TEST(BubbleTable, AProgramWithoutMemoryMarksLeavesFreeMemoryUnknown) {
  const auto tables = measure_bubbles(pipeline(true), plain_gpu());
  ASSERT_TRUE(tables);
  EXPECT_EQ((*tables)[0].front().info.free_memory, Bytes{});
}

// Gaps of 99 and 100 between kernels of 50, then 200 until the pass begins again: the first is
// too short.
TEST(BubbleTable, GapsBelow100AreNoBubbles) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker()
                          .kernel(0, 50).kernel(149, 50).kernel(150, 50).end(250).program());
  const auto tables = measure_bubbles(job, plain_gpu());
  ASSERT_TRUE(tables);
  EXPECT_EQ(text((*tables)[0]), "1: 100\n2: 200\n");
}

// Two streams: no bubble while either works. [0, 300] and [100, 150], then [500, 510].
TEST(BubbleTable, ABubbleIsWithoutWorkOnAnyStream) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker(2)
                          .kernel(0, 300).kernel(100, 50, 1).kernel(400, 10).end(20).program());
  const auto tables = measure_bubbles(job, plain_gpu());
  ASSERT_TRUE(tables);
  EXPECT_EQ(text((*tables)[0]), "0: 200\n");
}

// Rank 0 waits for a second rank that is not there.
TEST(BubbleTable, AJobThatStopsIsAFault) {
  JobProgram job;
  job.ranks.push_back(ProgramMaker().collective(0, 10, 0).wait_stream(0, 0).end().program());
  job.collectives = {{2, false, 0}};
  EXPECT_EQ(error_of(measure_bubbles(job, plain_gpu())).text(),
            "the training job stops when it runs alone: a dependency is never met");
}

}  // namespace
}  // namespace bubblesim::schedule
