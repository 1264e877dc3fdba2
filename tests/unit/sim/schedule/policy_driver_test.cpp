// A policy that does what the test says, driven by the simulator. Times in us.
#include <gtest/gtest.h>

#include "sim/schedule/bubble_table.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/schedule/driver_fixture.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::schedule {
namespace {

using workload::JobProgram, workload::ProgramMaker, workload::plain_gpu, workload::us;

TEST_F(PolicyDriverTest, ThePolicySeesEachLaunch) {
  spec_.needs.kernel_durations = true;
  run({ProgramMaker(2).kernel(10, 30).and_kernel(20, 1).copy_and_wait(90, 5, 0).end().program(),
       one_kernel(50, 7)});
  ASSERT_EQ(policy_.launches.size(), 3U);
  const policy::LaunchInfo& graph = policy_.launches[0];
  EXPECT_EQ(graph.client, kJob);
  EXPECT_EQ(graph.kind, program::WorkKind::kKernel);
  EXPECT_EQ(graph.blocks, 2U);
  EXPECT_EQ(graph.threads_per_block, 32U);
  EXPECT_EQ(graph.launch, 1U);
  EXPECT_EQ(graph.profiled, us(50));
  EXPECT_EQ(graph.operations, 2U);
  EXPECT_EQ(policy_.launches[1].client, kFiller);
  EXPECT_EQ(policy_.launches[1].launch, 1U);
  EXPECT_EQ(policy_.launches[1].operations, 1U);
  EXPECT_EQ(policy_.launches[2].kind, program::WorkKind::kCopy);
  EXPECT_EQ(policy_.launches[2].launch, 2U);
  EXPECT_EQ(policy_.launches[2].blocks, 0U);
  EXPECT_EQ(policy_.calls, (Calls{{"launch", 10}, {"launch", 50}, {"launch", 100}}));
  EXPECT_EQ(driver_->session().counts().calls, 3U);
}

TEST_F(PolicyDriverTest, DurationsAreShownOnlyIfDeclared) {
  run({one_kernel(10, 30)});
  EXPECT_EQ(policy_.launches[0].profiled, Duration{});
  EXPECT_TRUE(policy_.completions.empty());
}

// The job's kernel ends at 40; the policy knows at 44, and then only.
TEST_F(PolicyDriverTest, CompletionsAreNoticedAfterTheDevicesDelay) {
  spec_.needs.completions = true;
  run({one_kernel(10, 30), one_kernel(15, 2)});
  EXPECT_EQ(policy_.calls,
            (Calls{{"launch", 10}, {"launch", 15}, {"completion", 21}, {"completion", 44}}));
  EXPECT_EQ(policy_.completions[0].client, kFiller);
  EXPECT_EQ(policy_.completions[1].client, kJob);
  EXPECT_EQ(policy_.completions[1].launch, 1U);
}

// Each launch asks for 3: the job's of 10 is decided on at 13, the filler's of 15 at 18; its second
// comes 5 later, at 23, and is held at 26. A held one has asked already when it is released.
TEST_F(PolicyDriverTest, ALaunchIsDecidedOnWhenItHasAsked) {
  terms_.ask = us(3);
  spec_.needs.completions = true;
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions&) {
    return launch.client == kFiller && launch.launch == 2 ? Verdict::kHold : Verdict::kAdmit;
  };
  policy_.completion_rule = [](policy::Actions& actions) {
    if (actions.held(kFiller) > 0) actions.release(kFiller);
  };
  run({one_kernel(10, 30), ProgramMaker().kernel(15, 2).kernel(5, 2).end().program()});
  EXPECT_EQ(spans(0), (Spans{{13, 43}}));
  EXPECT_EQ(spans(1), (Spans{{18, 20}, {47, 49}}));
  EXPECT_EQ(policy_.calls[0], (std::pair<std::string, std::int64_t>{"launch", 13}));
  EXPECT_EQ(policy_.calls[1], (std::pair<std::string, std::int64_t>{"launch", 18}));
}

// The job asks for 3 at 10 and is told at 13 that it need not any more: its next call, at 23, goes
// on after 1. It cannot be held then.
TEST_F(PolicyDriverTest, WhoNeedNotAskTellsAndGoesOn) {
  terms_.ask = us(3);
  terms_.tell = us(1);
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions& actions) {
    EXPECT_EQ(launch.waits, launch.launch == 1);
    actions.set_asking(kJob, false);
    return launch.launch == 3 ? Verdict::kHold : Verdict::kAdmit;
  };
  run({ProgramMaker().kernel(10, 2).kernel(10, 2).kernel(10, 2).end().program()});
  EXPECT_EQ(spans(0), (Spans{{13, 15}, {24, 26}, {-1, -1}}));
  EXPECT_EQ(fault(), "policy fake: illegal decision at 35us: held a launch of client 0, whose "
                     "threads do not wait for verdicts");
}

// Both are let go by the completions of the job, noticed at 24 and 74: the first, held from 15 on
// for 9, looked; the second, held from 31 on for 43, slept and is woken, at 81. What the policy
// knows is when it let them go.
TEST_F(PolicyDriverTest, AHeldThreadThatSleepsGoesOnWhenItIsAwake) {
  terms_.sleep = {.spin = us(10), .wake = us(7)};
  spec_.needs.completions = true;
  hold_fillers();
  policy_.completion_rule = [](policy::Actions& actions) {
    if (actions.held(kFiller) > 0) actions.release(kFiller);
  };
  run({ProgramMaker().kernel(10, 10).kernel(0, 50).end().program(),
       ProgramMaker().kernel(15, 2).kernel(7, 2).end().program()});
  EXPECT_EQ(spans(1), (Spans{{24, 26}, {81, 83}}));
  EXPECT_EQ(driver_->session().counts().held_time, us(9 + 43));
  EXPECT_EQ(held_, (std::vector<std::array<std::int64_t, 3>>{{1, 15, 24}, {1, 31, 81}}));
}

// The filler's launch at 15 is held until the job's completion is noticed, at 44; its second
// comes 5 after the first went on.
TEST_F(PolicyDriverTest, AHeldLaunchGoesOnWhenReleased) {
  spec_.needs.completions = true;
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions&) {
    return launch.client == kFiller && launch.launch == 1 ? Verdict::kHold : Verdict::kAdmit;
  };
  policy_.completion_rule = [](policy::Actions& actions) {
    if (actions.held(kFiller) == 0) return;
    EXPECT_EQ(actions.oldest_held(kFiller).launch, 1U);
    actions.release(kFiller);
    EXPECT_EQ(actions.held(kFiller), 0U);
  };
  run({one_kernel(10, 30), ProgramMaker().kernel(15, 2).kernel(5, 2).end().program()});
  EXPECT_EQ(spans(1), (Spans{{44, 46}, {49, 51}}));
  EXPECT_EQ(driver_->session().counts().holds, 1U);
  EXPECT_EQ(driver_->session().counts().released, 1U);
  EXPECT_EQ(driver_->session().counts().held_time, us(29));
  EXPECT_EQ(held_, (std::vector<std::array<std::int64_t, 3>>{{1, 15, 44}}));
  EXPECT_EQ(driver_->session().still_held(), 0U);
  EXPECT_EQ(fault(), "none");
}

// Two threads of the filler are held at 15 and 20; one release at 30 lets the first go on.
TEST_F(PolicyDriverTest, TheOldestHeldLaunchOfAClientIsReleasedFirst) {
  hold_fillers();
  at_tick(us(30), [](policy::Actions& actions) {
    EXPECT_EQ(actions.held(kFiller), 2U);
    actions.release(kFiller);
  });
  run({one_kernel(10, 5), ProgramMaker(2).kernel(20, 2).end().thread().kernel(15, 3, 1).program()});
  EXPECT_EQ(spans(1), (Spans{{-1, -1}, {30, 33}}));
  EXPECT_EQ(driver_->session().still_held(), 1U);
  EXPECT_EQ(driver_->session().counts().held_time, us(15));
}

// A tick in the past comes at once: at the job's launch, at 10.
TEST_F(PolicyDriverTest, TicksComeWhenThePolicyAsksForThem) {
  policy_.ticks = {us(3), us(7)};
  policy_.launch_rule = [this](const policy::LaunchInfo&, policy::Actions&) {
    policy_.ticks = {us(1)};
    return Verdict::kAdmit;
  };
  run({one_kernel(10, 5)});
  EXPECT_EQ(policy_.calls, (Calls{{"tick", 3}, {"tick done", 3}, {"tick", 7}, {"tick done", 7},
                                  {"launch", 10}, {"tick", 10}, {"tick done", 10}}));
}

TEST_F(PolicyDriverTest, ATickThatIsNoLongerWantedDoesNotCome) {
  policy_.ticks = {us(100)};
  policy_.launch_rule = [this](const policy::LaunchInfo&, policy::Actions&) {
    policy_.ticks.clear();
    return Verdict::kAdmit;
  };
  run({one_kernel(10, 5)});
  EXPECT_EQ(policy_.calls, (Calls{{"launch", 10}}));
}

constexpr const char* kNothingHeld =
    "policy fake: illegal decision at 20us: released client 1, which holds no launch";

TEST_F(PolicyDriverTest, ReleasingWhatIsNotHeldStopsTheRun) {
  at_tick(us(20), [](policy::Actions& actions) { actions.release(kFiller); });
  run({one_kernel(10, 500), one_kernel(30, 5)});
  EXPECT_EQ(fault(), kNothingHeld);
  EXPECT_EQ(workload::microseconds(engine_.now()), 20);
}

TEST_F(PolicyDriverTest, ReleasingTwiceWhatIsHeldOnceStopsTheRun) {
  hold_fillers();
  at_tick(us(20), [](policy::Actions& actions) {
    actions.release(kFiller);
    actions.release(kFiller);
  });
  run({one_kernel(10, 500), one_kernel(15, 5)});
  EXPECT_EQ(fault(), kNothingHeld);
}

// The GPU has 4 SMs; the filler's kernels of 4 blocks, each a whole SM, last 10. From 15 on, the
// cap is one pair of SMs: two waves, 20.
TEST_F(PolicyDriverTest, ACapHoldsForWhatIsPlacedLater) {
  program::Program filler = ProgramMaker().kernel(0, 10).kernel(20, 10).end().program();
  filler.profiles[0] = gpu::blocks_of_warps(4, 8);
  at_tick(us(15), [](policy::Actions& actions) { actions.set_sm_percentage(kFiller, 50); });
  run({one_kernel(100, 1), filler});
  EXPECT_EQ(spans(1), (Spans{{0, 10}, {20, 40}}));
}

class BubbleNotices : public PolicyDriverTest {
 protected:
  BubbleNotices() {
    bubbles_ = &table_;
    spec_.needs.bubbles = true;
  }
  BubbleTable table_{{0, {us(60), {}, true}}, {2, {us(500), {}, false}}};
};

// Kernels [10, 40], [100, 130], [140, 150]; the table has the first and the third gap. The notice
// is an instruction of the training engine: it comes at once, at 40 and at 150.
TEST_F(BubbleNotices, BubblesBeginAfterTheirOperationAndEndWithTheNext) {
  run({ProgramMaker().kernel(10, 30).kernel(90, 30).kernel(40, 10).end().program()});
  EXPECT_EQ(policy_.calls,
            (Calls{{"launch", 10}, {"bubble", 40}, {"launch", 100}, {"end", 100},
                   {"launch", 140}, {"bubble", 150}}));
  ASSERT_EQ(policy_.bubbles.size(), 2U);
  EXPECT_EQ(policy_.bubbles[0].expected, us(60));
  EXPECT_TRUE(policy_.bubbles[0].pipeline);
  EXPECT_FALSE(policy_.bubbles[1].pipeline);
}

// Op 0 ends at 40, while the other stream's runs until 50: no bubble begins, since the work that
// ends last is not op 0.
TEST_F(BubbleNotices, NoBubbleBeginsWhileOtherTrainingWorkRuns) {
  run({ProgramMaker(2).kernel(10, 30).kernel(0, 40, 1).end().program()});
  EXPECT_EQ(policy_.calls, (Calls{{"launch", 10}, {"launch", 10}}));
}

TEST_F(BubbleNotices, AFillersWorkNeitherBeginsNorEndsABubble) {
  run({ProgramMaker().kernel(10, 30).kernel(90, 30).end().program(), one_kernel(50, 5)});
  EXPECT_EQ(policy_.calls, (Calls{{"launch", 10}, {"bubble", 40}, {"launch", 50},
                                  {"launch", 100}, {"end", 100}}));
}

// The job's kernel of 80 is held. At 120 a tick releases it, and it starts from inside that call:
// the policy is told of the bubble's end when the call has returned.
TEST_F(BubbleNotices, CallsOfThePolicyDoNotNest) {
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions&) {
    return launch.launch == 2 ? Verdict::kHold : Verdict::kAdmit;
  };
  at_tick(us(120), [](policy::Actions& actions) { actions.release(kJob); });
  run({ProgramMaker().kernel(10, 30).kernel(70, 10).end().program()});
  EXPECT_EQ(spans(0), (Spans{{10, 40}, {120, 130}}));
  EXPECT_EQ(policy_.calls,
            (Calls{{"launch", 10}, {"bubble", 40}, {"launch", 80}, {"tick", 120},
                   {"tick done", 120}, {"end", 120}}));
}

// Bubbles of a two-stage pipeline, measured alone. Times in us.
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
JobProgram pipeline() {
  JobProgram job;
  job.ranks.push_back(ProgramMaker()
                          .kernel(0, 300).collective(0, 10, 0).collective(0, 10, 1).kernel(0, 600)
                          .wait_stream(0, 0).end().program());
  job.ranks.push_back(ProgramMaker()
                          .rank(1).collective(0, 10, 0).kernel(0, 300).kernel(0, 600)
                          .collective(0, 10, 1).wait_stream(0, 0).end().program());
  job.collectives = {{2, true, 0}, {2, true, 0}};
  return job;
}

/// What measure_bubbles() finds in a job.
struct Measured {
  const char* name;
  std::vector<program::Program> ranks;
  std::vector<std::pair<std::uint32_t, bool>> collectives;  ///< participants; point to point or not
  std::vector<std::string> bubbles;  ///< of the first ranks
};

TEST(BubbleTable, HasEachStretchWithoutWorkBehindTheOperationBeforeIt) {
  const std::vector<program::Program> stages = pipeline().ranks;
  for (const Measured& row : {
           // Stage 0 is without work after op 0, from 300 to 1220. Stage 1 after op 2, from 1210 to
           // the next pass's forward: its receive ends at 2120 + 10, so 920 too.
           Measured{"each stage's", stages, {{2, true}, {2, true}},
                    {"0: 920 pipeline\n", "2: 920 pipeline\n"}},
           {"a wait for a collective of all is no pipeline's", stages, {{2, false}, {2, false}},
            {"0: 920\n"}},
           // Rank 0 sends to rank 2 from 0 to 900, and exchanges with rank 1 from 300 to 500,
           // between its two kernels. It waits for the exchange; that a send is under way makes it
           // no wait for the pipeline.
           {"an exchange during a send is no pipeline wait",
            {ProgramMaker(2).kernel(0, 300).collective(0, 900, 0, 1).collective(0, 200, 1)
                 .kernel(0, 600).wait_device(0, 0).end().program(),
             ProgramMaker().rank(1).kernel(0, 300).collective(0, 200, 1).kernel(0, 600)
                 .wait_stream(0, 0).end().program(),
             ProgramMaker().rank(2).collective(0, 900, 0).wait_stream(0, 0).end().program()},
            {{2, true}, {2, false}}, {"0: 200\n"}},
           // The host launches a pass of 800 in 20 and waits for nothing: its second pass is over
           // before the first kernel has ended. The device's second one has both bubbles.
           {"of a host that runs ahead the device's second pass is measured",
            {ProgramMaker().kernel(5, 300).collective(5, 100, 0).kernel(5, 300)
                 .collective(5, 100, 0).end().program()},
            {{1, false}}, {"0: 100\n2: 100\n"}},
           // Folded replicas: one participant, and no pipeline.
           {"a folded all-reduce is a collective and no pipeline wait",
            {ProgramMaker().kernel(0, 50).collective(0, 300, 0).wait_stream(0, 0).end().program()},
            {{1, false}}, {"0: 300\n"}},
           // Gaps of 99 and 100 between kernels of 50, then 200 until the pass begins again.
           {"gaps below 100 are no bubbles",
            {ProgramMaker().kernel(0, 50).kernel(149, 50).kernel(150, 50).end(250).program()}, {},
            {"1: 100\n2: 200\n"}},
           // No bubble while either stream works. [0, 300] and [100, 150], then [500, 510].
           {"a bubble is without work on any stream",
            {ProgramMaker(2).kernel(0, 300).kernel(100, 50, 1).kernel(400, 10).end(20).program()},
            {}, {"0: 200\n"}}}) {
    SCOPED_TRACE(row.name);
    JobProgram job;
    job.ranks = row.ranks;
    for (const auto& [participants, ends] : row.collectives) {
      job.collectives.push_back({participants, ends, 0});
    }
    const auto tables = must(measure_bubbles(job, plain_gpu()));
    ASSERT_EQ(tables.size(), row.ranks.size());
    for (std::size_t i = 0; i < row.bubbles.size(); ++i) EXPECT_EQ(text(tables[i]), row.bubbles[i]);
  }
}

// Both stages end with an all-reduce over both (the gradients' norm): whoever is early waits there
// for its peer. A third rank, which sends nothing, shares another one with stage 0.
TEST(BubbleTable, ACollectiveOfRanksThatSendsConnectIsAPipelineWait) {
  JobProgram job = pipeline();
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
  const auto tables = must(measure_bubbles(job, gpu));
  std::vector<std::uint64_t> free;
  for (const policy::MeasuredBubble& bubble : tables[0]) {
    free.push_back(bubble.info.free_memory.value);
  }
  EXPECT_EQ(text(tables[0]), "0: 200\n2: 200\n3: 200\n");
  EXPECT_EQ(free, (std::vector<std::uint64_t>{70, 50, 70}));
}

TEST(BubbleTable, AProgramWithoutMemoryMarksLeavesFreeMemoryUnknown) {
  const auto tables = must(measure_bubbles(pipeline(), plain_gpu()));
  EXPECT_EQ(tables[0].front().info.free_memory, Bytes{});
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
