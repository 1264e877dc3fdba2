// Where jobs go: SpecInF's placement by spare memory, Dilu's by shares and memory, FreeRide's
// manager, PipeFill's scheduler and its plans.
#include <gmock/gmock.h>

#include "policies/builtin.hpp"
#include "policies/dilu_placer.hpp"
#include "policies/fill_plan.hpp"
#include "policies/freeride_placer.hpp"
#include "policies/pipefill_scheduler.hpp"
#include "policies/spare_memory_placer.hpp"
#include "sim/policy/parameter_check.hpp"
#include "tests/bytes.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;
using policy::GpuState, policy::JobInfo;

/// GPUs of 40 bytes with so much in use.
std::vector<GpuState> gpus(std::vector<std::uint64_t> used) {
  std::vector<GpuState> result;
  for (const std::uint64_t bytes : used) {
    GpuState gpu;
    gpu.id = GpuId{static_cast<std::uint32_t>(result.size())};
    gpu.memory = Bytes{40};
    gpu.used = Bytes{bytes};
    result.push_back(gpu);
  }
  return result;
}

JobInfo job(std::uint32_t id, std::uint64_t memory, std::uint32_t kind = 0) {
  JobInfo result;
  result.id = id;
  result.kind = kind;
  result.memory = Bytes{memory};
  result.memory_known = true;
  return result;
}

/// "job@gpu" of what is placed, in order.
std::vector<std::string> placed(policy::Placer& placer, const std::vector<JobInfo>& waiting,
                                const std::vector<GpuState>& gpus, policy::Instant now = 0s) {
  std::vector<std::string> out;
  for (const policy::Placement& placement : placer.place(waiting, gpus, now)) {
    out.push_back(std::to_string(placement.job) + "@" + std::to_string(placement.gpu.value));
  }
  return out;
}

/// LLaMA2-7B in a pipeline leaves 5, 1, 1 and 5 of 40. BERT needs 5, and 1 must stay free.
TEST(spare_memory_placer, finds_no_room_in_the_middle_of_a_pipeline) {
  SpareMemoryPlacer placer({.reserve = Bytes{0}});
  EXPECT_THAT(placed(placer, {job(0, 5), job(1, 5), job(2, 5)}, gpus({35, 39, 39, 35})),
              ElementsAre("0@0", "1@3"));
  SpareMemoryPlacer careful({.reserve = Bytes{1}});
  EXPECT_THAT(placed(careful, {job(0, 5)}, gpus({35, 39, 39, 35})), IsEmpty());
}

/// 10, 20 and 15 are spare: 20 first, then 15 (20 - 6 = 14), then 14, then 10 and 9.
TEST(spare_memory_placer, takes_the_most_spare_memory_or_the_least) {
  SpareMemoryPlacer most({});
  const std::vector<JobInfo> jobs{job(7, 6), job(8, 6), job(9, 6)};
  EXPECT_THAT(placed(most, jobs, gpus({30, 20, 25})),
              ElementsAre("7@1", "8@2", "9@1"));
  SpareMemoryPlacer least({.order = SpareMemoryConstants::Order::kLeastSpare});
  EXPECT_THAT(placed(least, jobs, gpus({30, 20, 25})),
              ElementsAre("7@0", "8@2", "9@2"));
}

TEST(spare_memory_placer, places_what_is_not_known_to_be_too_large) {
  SpareMemoryPlacer placer({});
  JobInfo unknown = job(0, 0);
  unknown.memory_known = false;
  EXPECT_THAT(placed(placer, {unknown}, gpus({40})), ElementsAre("0@0"));
}

/// A worker of training has request 0.5 and limit 0.9; a job 0.3 and 0.6. One fits (0.8, 1.5),
/// a second one's limit does not (2.1).
TEST(dilu_placer, keeps_requests_and_limits_within_bounds) {
  DiluPlacerConstants constants;
  DiluPlacer placer(constants);
  EXPECT_THAT(placed(placer, {job(0, 1), job(1, 1)}, gpus({10})), ElementsAre("0@0"));
  constants.limits = 3;
  DiluPlacer lavish(constants);  // now the requests: 0.5 + 0.3 + 0.3
  EXPECT_THAT(placed(lavish, {job(0, 1), job(1, 1)}, gpus({10})), ElementsAre("0@0"));
}

/// Best fit by memory: 30 of 40 in use is fuller than 10. Memory that does not fit goes elsewhere.
TEST(dilu_placer, packs_the_fullest_gpu_that_has_room) {
  DiluPlacer placer({});
  EXPECT_THAT(placed(placer, {job(0, 5, 0), job(1, 8, 1)}, gpus({10, 30, 20})),
              ElementsAre("0@1", "1@2"));
}

/// A second instance of a service goes to a GPU of the job without one, though the first is
/// fuller; when each has one, to the fullest again.
TEST(dilu_placer, slows_all_workers_of_a_job_alike) {
  DiluPlacerConstants constants;
  constants.limits = 10;
  constants.training_request = 0.1;
  DiluPlacer placer(constants);
  EXPECT_THAT(placed(placer, {job(0, 5), job(1, 5), job(2, 5)}, gpus({10, 20})),
              ElementsAre("0@1", "1@0", "2@1"));
  // Another service has no instance yet: the fullest.
  EXPECT_THAT(placed(placer, {job(3, 5, 9)}, gpus({10, 20})), ElementsAre("3@1"));
}

TEST(dilu_placer, forgets_instances_of_a_gpu_whose_jobs_have_ended) {
  DiluPlacer placer({});
  EXPECT_THAT(placed(placer, {job(0, 5)}, gpus({10, 20})), ElementsAre("0@1"));
  EXPECT_THAT(placed(placer, {job(1, 5)}, gpus({10, 20})), ElementsAre("1@1"));
  std::vector<GpuState> state = gpus({10, 25});
  state[1].jobs = 1;
  EXPECT_THAT(placed(placer, {job(2, 5)}, state), ElementsAre("2@0"));
}

/// A job says its own shares: 0.7 and 0.7 beside 0.3 and 0.9 is over the limits of 1.5.
TEST(dilu_placer, takes_a_job_at_its_word) {
  DiluPlacer placer({.training_request = 0.3});
  JobInfo large = job(0, 1);
  large.request = 0.7;
  large.limit = 0.7;
  EXPECT_THAT(placed(placer, {large}, gpus({10})), IsEmpty());
  large.limit = 0.6;
  EXPECT_THAT(placed(placer, {large}, gpus({10})), ElementsAre("0@0"));
}

/// A GPU works off one fill job at a time; the instance beside it serves for ever.
TEST(placers, give_a_gpu_one_fill_job_at_a_time) {
  SpareMemoryPlacer spare({});
  DiluPlacerConstants constants;
  constants.limits = constants.requests = 10;
  DiluPlacer dilu(constants);
  for (policy::Placer* placer :
       {static_cast<policy::Placer*>(&spare), static_cast<policy::Placer*>(&dilu)}) {
    EXPECT_THAT(placed(*placer, {job(0, 1)}, gpus({10})), ElementsAre("0@0"));
    std::vector<JobInfo> finite{job(1, 1, 1), job(2, 1, 1)};
    finite[0].work = finite[1].work = std::chrono::seconds(1);
    std::vector<GpuState> state = gpus({11});
    state[0].jobs = 1;
    EXPECT_THAT(placed(*placer, finite, state), ElementsAre("1@0"));
    state[0].jobs = 2;
    EXPECT_THAT(placed(*placer, {finite[1]}, state), IsEmpty());
    state[0].jobs = 1;
    EXPECT_THAT(placed(*placer, {finite[1]}, state), ElementsAre("2@0"));
  }
}

TEST(placers, are_the_systems_own_unless_told) {
  for (const policy::PolicySpec& spec : {specinf_spec(), dilu_spec()}) {
    EXPECT_NE(spec.make_placer(policy::defaults(spec)), nullptr);
    const policy::GivenParameter given{"placement", "as_configured"};
    const auto values = policy::check_parameters(spec, {&given, 1}, "", "");
    EXPECT_EQ(spec.make_placer(*values), nullptr);
  }
}

// FreeRide's manager: which queue a side task joins, and when it begins.
JobInfo job(std::uint32_t id, Bytes memory) {
  JobInfo info;
  info.id = id;
  info.work = 1s;
  info.memory = memory;
  info.memory_known = memory != Bytes{};
  return info;
}

GpuState gpu(std::uint32_t id, Bytes used, std::uint32_t jobs = 0) {
  GpuState state;
  state.id = GpuId{id};
  state.memory = gb(16);
  state.used = used;
  state.jobs = jobs;
  return state;
}

// Headrooms of 4 and 8 GB. Of two empty queues job 0 takes GPU 0's, 1 takes the shorter one, 2 (5
// GB) only fits GPU 1 and waits behind 1.
TEST(FreeRidePlacer, QueuesWhereHeadroomSufficesAndTheQueueIsShortest) {
  FreeRidePlacer placer;
  const std::vector<JobInfo> jobs{job(0, gb(3)), job(1, gb(3)), job(2, gb(5))};
  EXPECT_THAT(placed(placer, jobs, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("0@0", "1@1"));
  EXPECT_THAT(placed(placer, {jobs[2]}, {gpu(0, gb(12)), gpu(1, gb(11), 1)}), IsEmpty());
  EXPECT_THAT(placed(placer, {jobs[2]}, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("2@1"));
}

TEST(FreeRidePlacer, PutsUnknownMemoryWhereHeadroomIsLargest) {
  FreeRidePlacer placer;
  const std::vector<JobInfo> jobs{job(0, Bytes{}), job(1, Bytes{})};
  EXPECT_THAT(placed(placer, jobs, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("0@1"));
}

// Headrooms of 4, 8 and 8 GB: of the larger ones GPU 1, then the shorter queue, GPU 2's.
TEST(FreeRidePlacer, SpreadsUnknownMemoryOverEqualHeadrooms) {
  FreeRidePlacer placer;
  const std::vector<JobInfo> jobs{job(0, Bytes{}), job(1, Bytes{})};
  EXPECT_THAT(placed(placer, jobs, {gpu(0, gb(12)), gpu(1, gb(8)), gpu(2, gb(8))}),
              ElementsAre("0@1", "1@2"));
}

TEST(FreeRidePlacer, CountsTasksWithoutHeadroom) {
  FreeRidePlacer placer;
  EXPECT_THAT(placed(placer, {job(0, gb(4))}, {gpu(0, gb(12))}), IsEmpty());  // not below 4
  CounterSet counters;
  placer.add_counts(counters);
  EXPECT_EQ(counters.count("freeride_tasks_without_headroom"), 1u);
}

// PipeFill's scheduler: which fill job begins where.
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

FillScheduler with(FillRule rule) { return FillScheduler({.rule = rule, .fraction = 0.5}); }

const std::vector<JobInfo> kThree{job(0, 2s), job(1, 3s), job(2, 1s)};

// The GPU with the most bubble time comes first, with the first, the shortest or the longest job.
TEST(FillScheduler, PlacesByItsRule) {
  const auto placed_by = [](FillRule rule, const std::vector<GpuState>& gpus) {
    FillScheduler scheduler = with(rule);
    return placed(scheduler, kThree, gpus);
  };
  EXPECT_THAT(placed_by(FillRule::kFirstCome, {gpu(0, 1s), gpu(1, 2s)}), ElementsAre("0@1", "1@0"));
  EXPECT_THAT(placed_by(FillRule::kShortestJob, {gpu(0, 2s), gpu(1, 1s)}),
              ElementsAre("2@0", "0@1"));
  EXPECT_THAT(placed_by(FillRule::kMakespan, {gpu(0, 2s), gpu(1, 3s)}), ElementsAre("1@1", "0@0"));
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

// PipeFill's execution plan: sums that can be checked by hand.
constexpr ClientId kFirst{1};
constexpr ClientId kSecond{2};

/// Half of a bubble may be filled, less 1 ms for the switch.
FillConstants half() { return {.fraction = 0.5, .switch_cost = 1ms}; }

/// The host moves 1 GB in 1 ms; 10 GB of the device are left beside training's peak.
FillConstants moving() {
  FillConstants constants{.fraction = 1, .offload = Offload::kWhatDoesNotFit};
  constants.host_link = BytesPerSecond{1e12};
  constants.beside_training = gb(10);
  return constants;
}

FillPlan plan(const FillConstants& constants, Bytes first = {}, Bytes second = {}) {
  return FillPlan(constants, {Bytes{}, first, second});
}

TEST(FillPlan, CutsAtTheUsablePartOfEachBubble) {
  FillPlan cut = plan(half());
  EXPECT_FALSE(cut.take(kFirst, 1ms, 0ms));  // no bubble
  cut.begin_bubble(20ms, {}, 100ms);         // to 100 + 10 - 1
  EXPECT_TRUE(cut.take(kFirst, 4ms, 100ms));
  EXPECT_TRUE(cut.take(kFirst, 5ms, 100ms));  // ends at 109
  EXPECT_FALSE(cut.take(kFirst, 1ns, 100ms));
  cut.end_bubble();
  EXPECT_FALSE(cut.take(kFirst, 0ms, 101ms));
  cut.begin_bubble(4ms, {}, 200ms);  // to 200 + 2 - 1
  EXPECT_FALSE(cut.take(kFirst, 2ms, 200ms));
  EXPECT_TRUE(cut.take(kFirst, 1ms, 200ms));
}

TEST(FillPlan, TimeThatHasPassedIsGone) {
  FillPlan late = plan(half());
  late.begin_bubble(20ms, {}, 0ms);  // to 9
  EXPECT_FALSE(late.take(kFirst, 4ms, 6ms));
  EXPECT_TRUE(late.take(kFirst, 3ms, 6ms));
}

// Bubbles of 10 and 20 ms: 4 and 9 ms are usable. 15 ms + 1 fit into no half, but into all of the
// longer one, once an iteration has shown that it is the longest.
TEST(FillPlan, WhatNoBubbleTakesRunsAloneInTheLongest) {
  FillPlan alone = plan(half());
  alone.begin_bubble(20ms, {}, 0ms);
  EXPECT_FALSE(alone.take(kFirst, 15ms, 0ms));
  EXPECT_FALSE(alone.has_place(15ms));
  alone.begin_bubble(10ms, {}, 50ms);
  alone.end_iteration();
  EXPECT_TRUE(alone.has_place(15ms));
  EXPECT_FALSE(alone.has_place(20ms));  // 20 + 1 > 20: stuck
  alone.begin_bubble(10ms, {}, 60ms);
  EXPECT_FALSE(alone.take(kFirst, 15ms, 60ms));
  alone.begin_bubble(20ms, {}, 100ms);
  EXPECT_TRUE(alone.take(kFirst, 15ms, 100ms));
  EXPECT_FALSE(alone.take(kFirst, 1ms, 100ms));  // alone
  EXPECT_EQ(alone.alone(), 1u);
  alone.begin_bubble(20ms, {}, 200ms);
  EXPECT_TRUE(alone.take(kFirst, 1ms, 200ms));
  EXPECT_FALSE(alone.take(kFirst, 15ms, 200ms));  // not the first
}

TEST(FillPlan, FillersShareTheMemoryOfABubbleInTheOrderInWhichTheyCome) {
  FillPlan tight = plan(half(), gb(6), gb(5));
  tight.begin_bubble(20ms, gb(10), 0ms);
  EXPECT_TRUE(tight.take(kSecond, 1ms, 0ms));
  EXPECT_FALSE(tight.take(kFirst, 1ms, 0ms));  // 11 > 10
  tight.begin_bubble(20ms, gb(10), 100ms);     // a bubble begins empty
  EXPECT_TRUE(tight.take(kFirst, 1ms, 100ms));
  EXPECT_FALSE(tight.take(kSecond, 1ms, 100ms));
  EXPECT_FALSE(tight.lacks_memory(kFirst));
}

TEST(FillPlan, AFillerThatNoBubbleHasMemoryForIsKnown) {
  FillPlan large = plan(half(), gb(11));
  large.begin_bubble(20ms, gb(10), 0ms);
  EXPECT_FALSE(large.take(kFirst, 1ms, 0ms));
  EXPECT_TRUE(large.lacks_memory(kFirst));
  large.begin_bubble(20ms, {}, 50ms);  // not known: it may
  EXPECT_TRUE(large.take(kFirst, 1ms, 50ms));
  EXPECT_FALSE(large.lacks_memory(kFirst));
}

// 12 GB, 10 of them beside training: 2 GB move in (2 ms) and out (2 ms). Of a bubble of 20 ms with
// 15 GB free, 16 are left, from 2 to 18.
TEST(FillPlan, WhatDoesNotFitBesideTrainingIsMovedInAndOut) {
  FillPlan moves = plan(moving(), gb(12));
  moves.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(moves.take(kFirst, 16ms, 0ms));
  EXPECT_EQ(moves.ready(kFirst), policy::Instant{2ms});
  EXPECT_FALSE(moves.take(kFirst, 17ms, 2ms));
  EXPECT_TRUE(moves.take(kFirst, 16ms, 2ms));
  EXPECT_EQ(moves.moved(), Duration{4ms});
}

// 16 GB: 6 move in beyond the 10, and 1 GB of training makes room, as the bubble has 15 free.
TEST(FillPlan, TrainingMakesRoomForWhatTheBubbleHasNot) {
  FillPlan moves = plan(moving(), gb(16));
  moves.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(moves.take(kFirst, 6ms, 0ms));
  EXPECT_EQ(moves.ready(kFirst), policy::Instant{7ms});
  EXPECT_TRUE(moves.take(kFirst, 6ms, 7ms));  // 7 + 6 + 7 = 20
  moves.begin_bubble(20ms, gb(15), 100ms);
  EXPECT_FALSE(moves.take(kFirst, 7ms, 100ms));  // not worth a move: nothing is planned
  EXPECT_EQ(moves.ready(kFirst), std::nullopt);
}

TEST(FillPlan, NothingIsMovedOverALinkThatNobodyKnows) {
  FillConstants constants = moving();
  constants.host_link = {};
  FillPlan blind = plan(constants, gb(12), gb(10));
  blind.begin_bubble(20ms, gb(15), 0ms);
  EXPECT_FALSE(blind.take(kFirst, 1ms, 0ms));
  EXPECT_TRUE(blind.take(kSecond, 1ms, 0ms));
}

}  // namespace
}  // namespace bubblesim::policies
