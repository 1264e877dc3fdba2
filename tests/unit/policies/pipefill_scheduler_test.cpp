// PipeFill's scheduler: which fill job begins where.
#include "policies/pipefill_scheduler.hpp"

#include <gmock/gmock.h>

#include "tests/bytes.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using policy::GpuState, policy::JobInfo;
using ::testing::ElementsAre, ::testing::IsEmpty;

JobInfo job(std::uint32_t id, Duration work, std::optional<policy::Instant> deadline = {}) {
  JobInfo info;
  info.id = id;
  info.work = work;
  info.deadline = deadline;
  return info;
}

/// Of 16 GB, 10 are training's; `bubbles` of its 10 s are pipeline bubbles.
GpuState gpu(std::uint32_t id, Duration bubbles) {
  GpuState state;
  state.id = GpuId{id};
  state.memory = gb(16);
  state.used = gb(10);
  state.iteration = 10s;
  state.bubble_time = 10s;
  state.pipeline_time = bubbles;
  return state;
}

/// "job@gpu" of what is placed.
std::vector<std::string> placed(FillScheduler& scheduler, const std::vector<JobInfo>& waiting,
                                const std::vector<GpuState>& gpus, policy::Instant now = 0s) {
  std::vector<std::string> out;
  for (const policy::Placement& placement : scheduler.place(waiting, gpus, now)) {
    out.push_back(std::to_string(placement.job) + "@" + std::to_string(placement.gpu.value));
  }
  return out;
}

FillScheduler with(FillRule rule) { return FillScheduler({.rule = rule, .fraction = 0.5}); }

const std::vector<JobInfo> kThree{job(0, 2s), job(1, 3s), job(2, 1s)};

TEST(FillScheduler, GivesTheGpuWithTheMostBubbleTimeFirst) {
  FillScheduler scheduler = with(FillRule::kFirstCome);
  EXPECT_THAT(placed(scheduler, kThree, {gpu(0, 1s), gpu(1, 2s)}), ElementsAre("0@1", "1@0"));
}

TEST(FillScheduler, RunsTheShortestJobFirst) {
  FillScheduler scheduler = with(FillRule::kShortestJob);
  EXPECT_THAT(placed(scheduler, kThree, {gpu(0, 2s), gpu(1, 1s)}), ElementsAre("2@0", "0@1"));
}

TEST(FillScheduler, MakespanRunsTheLongestJobFirst) {
  FillScheduler scheduler = with(FillRule::kMakespan);
  EXPECT_THAT(placed(scheduler, kThree, {gpu(0, 2s), gpu(1, 3s)}), ElementsAre("1@1", "0@0"));
}

TEST(FillScheduler, PlacesNoJobOnABusyGpu) {
  FillScheduler scheduler = with(FillRule::kFirstCome);
  GpuState busy = gpu(0, 2s);
  busy.jobs = 1;
  EXPECT_THAT(placed(scheduler, kThree, {busy}), IsEmpty());
}

// A fifth of the time is bubbles, half of it is filled: 1 s of work takes 10 s.
TEST(FillScheduler, RefusesWhatCannotMeetItsDeadline) {
  FillScheduler scheduler = with(FillRule::kDeadline);
  const std::vector<JobInfo> jobs{job(0, 1s), job(1, 1s, 30s), job(2, 1s, 10s), job(3, 1s, 9s)};
  const std::vector<GpuState> gpus{gpu(0, 2s)};
  EXPECT_THAT(placed(scheduler, jobs, gpus), ElementsAre("2@0"));
  EXPECT_THAT(placed(scheduler, {jobs[0], jobs[1], jobs[3]}, gpus, 10s), ElementsAre("1@0"));
  EXPECT_THAT(placed(scheduler, {jobs[0], jobs[3]}, gpus, 20s), ElementsAre("0@0"));
  EXPECT_THAT(placed(scheduler, {jobs[3]}, gpus, 30s), IsEmpty());
  CounterSet counters;
  scheduler.add_counts(counters);
  EXPECT_EQ(counters.count("pipefill_deadlines_refused"), 1u);
}

// On GPU 0 it would take 20 s, on GPU 1, which is busy, 10: it waits for that.
TEST(FillScheduler, WaitsForAGpuOnWhichTheDeadlineIsMet) {
  FillScheduler scheduler = with(FillRule::kDeadline);
  GpuState fast = gpu(1, 2s);
  fast.jobs = 1;
  EXPECT_THAT(placed(scheduler, {job(0, 1s, 15s)}, {gpu(0, 1s), fast}), IsEmpty());
  fast.jobs = 0;
  EXPECT_THAT(placed(scheduler, {job(0, 1s, 15s)}, {gpu(0, 1s), fast}, 1s), ElementsAre("0@1"));
}

TEST(FillScheduler, RefusesNothingWhereSharesAreNotKnown) {
  FillScheduler scheduler = with(FillRule::kDeadline);
  EXPECT_THAT(placed(scheduler, {job(0, 1s, 1ms)}, {gpu(0, 0s)}), ElementsAre("0@0"));
}

TEST(FillScheduler, PassesOverWhatHasNoMemory) {
  FillScheduler scheduler = with(FillRule::kFirstCome);
  std::vector<JobInfo> jobs = kThree;
  for (JobInfo& info : jobs) info.memory_known = true;
  jobs[0].memory = gb(7);  // 10 + 7 > 16
  jobs[1].memory = gb(6);
  EXPECT_THAT(placed(scheduler, jobs, {gpu(0, 1s)}), ElementsAre("1@0"));
  GpuState tight = gpu(0, 1s);
  tight.bubble_memory = gb(5);
  EXPECT_THAT(placed(scheduler, jobs, {tight}), ElementsAre("2@0"));
  FillScheduler moves({.offload = Offload::kWhatDoesNotFit});
  EXPECT_THAT(placed(moves, jobs, {tight}), ElementsAre("0@0"));
}

TEST(FillScheduler, SpreadsEndlessJobsAndLetsOthersRunBesideThem) {
  FillScheduler scheduler = with(FillRule::kFirstCome);
  const std::vector<JobInfo> jobs{job(0, 0s), job(1, 0s), job(2, 0s), job(3, 1s)};
  EXPECT_THAT(placed(scheduler, jobs, {gpu(0, 2s), gpu(1, 1s)}),
              ElementsAre("0@0", "1@1", "2@0", "3@0"));
}

}  // namespace
}  // namespace bubblesim::policies
