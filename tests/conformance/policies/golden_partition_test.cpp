// Policies that decide before the start, and the fixed round of time slices: one small scenario
// each, with numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::Contains, ::testing::ElementsAre, ::testing::IsEmpty;

Filler filler(Bytes memory, Role role = Role::kOffline) {
  return {role, {{{}, WorkKind::kKernel, 1, 1us}}, 5, 0ns, memory, true};
}

/// An A100 of 80 GiB: 7 slices of 14 SMs and 8 of 10 GiB. Training has 30 GiB.
Scenario a100(std::vector<Filler> fillers) {
  Scenario result;
  result.gpu = {.name = "A100", .sm_count = 108, .tpc_sms = 2, .memory = gib(80),
                .time_slice = 1ms, .context_switch = 50us, .mig = {7, 8, 14}};
  result.training_memory = gib(30);
  result.fillers = std::move(fillers);
  result.horizon = 1ms;
  return result;
}

/// 4g is 4 of 7 compute slices and 4 of 8 memory slices; 3g takes the 3 and 4 that are left.
TEST(mig, cuts_the_gpu_between_training_and_one_filler) {
  const Outcome outcome = drive("mig", {}, a100({filler(gib(10)), filler(gib(10))}));
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kPartitioned);
  EXPECT_EQ(outcome.clients[0].sms, 56u);  // 4 * 14
  EXPECT_EQ(outcome.clients[0].memory_share, 0.5);
  EXPECT_EQ(outcome.clients[1].sms, 42u);  // 3 * 14
  EXPECT_EQ(outcome.clients[1].memory_share, 0.5);
  EXPECT_TRUE(outcome.admissions[0].admitted);
  EXPECT_EQ(outcome.admissions[1].reason, "no slices are left for an instance 3g");
}

/// Beside 3g (4 of 8 memory slices) four instances 1g fit: 3 + 4 * 1 = 7 compute slices.
TEST(mig, makes_instances_while_slices_are_left) {
  const Outcome outcome =
      drive("mig", {"training_profile=3g", "filler_profile=1g"},
            a100({filler(gib(1)), filler(gib(1)), filler(gib(1)), filler(gib(1)),
                  filler(gib(1))}));
  EXPECT_TRUE(outcome.admissions[3].admitted);
  EXPECT_FALSE(outcome.admissions[4].admitted);
}

TEST(mig, refuses_memory_that_does_not_fit_the_instance) {
  const Outcome outcome =
      drive("mig", {"filler_profile=1g"}, a100({filler(gib(11)), filler(gib(10))}));
  EXPECT_EQ(outcome.admissions[0].reason, "needs 11GiB, more than an instance 1g has");
  EXPECT_TRUE(outcome.admissions[1].admitted);
}

TEST(mig, leaves_a_gpu_whole_that_cannot_be_cut_or_whose_training_is_too_large) {
  Scenario whole = a100({filler(gib(1))});
  whole.training_memory = gib(41);
  const Outcome large = drive("mig", {}, whole);
  EXPECT_EQ(large.sharing.mode, SharingMode::kSpatial);
  EXPECT_EQ(large.admissions[0].reason, "mig: training needs 41GiB, more than an instance 4g has");
  whole.gpu.mig = {};
  const Outcome without = drive("mig", {}, whole);
  EXPECT_EQ(without.clients[0].sms, 0u);
  EXPECT_EQ(without.admissions[0].reason, "mig: this GPU cannot be cut into instances");
}

TEST(mig, refuses_training_on_several_gpus) {
  Scenario distributed = a100({filler(gib(1))});
  distributed.training_ranks = 2;
  const Outcome outcome = drive("mig", {}, distributed);
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kSpatial);
  EXPECT_EQ(outcome.admissions[0].reason,
            "mig: training has 2 GPUs, and instances have no peer access to other GPUs");
}

/// An A30 has 4 slices of each kind.
TEST(mig, takes_as_many_memory_as_compute_slices_where_there_are_no_more) {
  Scenario a30 = a100({filler(gib(40))});
  a30.gpu.mig = {4, 4, 14};
  const Outcome outcome = drive("mig", {"training_profile=2g", "filler_profile=2g"}, a30);
  EXPECT_EQ(outcome.clients[1].memory_share, 0.5);
  EXPECT_TRUE(outcome.admissions[0].admitted);
}

TEST(stream_priority, places_training_first_and_online_fillers_where_told) {
  const Scenario any = a100({filler(gib(1), Role::kOnline), filler(gib(1), Role::kTraining)});
  const Outcome plain = drive("stream_priority", {}, any);
  EXPECT_EQ(plain.sharing.mode, SharingMode::kSpatial);
  EXPECT_GT(plain.clients[0].priority, plain.clients[1].priority);
  EXPECT_EQ(plain.clients[1].priority, plain.clients[2].priority);
  const Outcome middle = drive("stream_priority", {"online_fillers=middle"}, any);
  EXPECT_GT(middle.clients[0].priority, middle.clients[1].priority);
  EXPECT_GT(middle.clients[1].priority, middle.clients[2].priority);
}

/// 30 SMs in TPCs of 2 are 30; in granules of 8 they are 32. Of 108 SMs three parts of 32 leave
/// 12 to training, and a fourth would leave nothing.
TEST(green_context, cuts_whole_granules_off_and_leaves_training_one) {
  const Scenario two = a100({filler(gib(1)), filler(gib(1))});
  const Outcome tpcs = drive("green_context", {"filler_sms=30"}, two);
  EXPECT_EQ(tpcs.clients[1].sms, 30u);
  EXPECT_EQ(tpcs.clients[0].sms, 48u);  // 108 - 2 * 30
  const Scenario four = a100({filler(gib(1)), filler(gib(1)), filler(gib(1)), filler(gib(1))});
  const Outcome granules = drive("green_context", {"filler_sms=30", "granularity_sms=8"}, four);
  EXPECT_EQ(granules.clients[1].sms, 32u);
  EXPECT_EQ(granules.clients[0].sms, 12u);
  EXPECT_TRUE(granules.admissions[2].admitted);
  EXPECT_EQ(granules.admissions[3].reason, "no 32 SMs are left beside training, the GPU has 108");
  EXPECT_EQ(drive("green_context", {"training=all"}, two).clients[0].sms, 0u);  // all
}

TEST(green_context, says_so_if_the_sms_are_not_known) {
  Scenario unknown = a100({filler(gib(1))});
  unknown.gpu.sm_count = 0;
  EXPECT_EQ(drive("green_context", {}, unknown).counts.count("green_context_uncut"), 1u);
}

TEST(gpreempt, gives_training_long_turns_and_fillers_short_ones) {
  const Outcome outcome = drive("gpreempt", {}, a100({filler(gib(1))}));
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kTimeSliced);
  EXPECT_EQ(outcome.clients[0].slice, Duration{1s});
  EXPECT_EQ(outcome.clients[1].slice, Duration{1us});
}

TEST(ideal, is_an_oracle_that_holds_nothing) {
  const Outcome ideal = drive("ideal", {}, a100({filler(gib(1))}));
  EXPECT_EQ(ideal.sharing.mode, SharingMode::kIdleOnly);
  EXPECT_EQ(ideal.count(1, 0s, 1s), 5u);
  EXPECT_EQ(drive("ideal_spatial", {}, a100({})).sharing.mode, SharingMode::kLeftover);
}

TEST(time_slicing, gives_fillers_turns_of_another_length_if_told) {
  const Scenario any = a100({filler(gib(1))});
  EXPECT_EQ(drive("time_slicing", {"slice=2ms"}, any).clients[1].slice, std::nullopt);
  const Outcome shorter = drive("time_slicing", {"slice=2ms", "filler_slice=500us"}, any);
  EXPECT_EQ(shorter.clients[0].slice, std::nullopt);
  EXPECT_EQ(shorter.clients[1].slice, Duration{500us});
  EXPECT_EQ(drive("time_slicing", {"slice=2ms", "filler_slice=device"}, any).clients[1].slice,
            Duration{1ms});
}

/// A round of 2 ms for training, then 1 ms for each of two fillers: 4 ms. Filler 2 dies at 5 ms;
/// its slot, 3 to 4 ms of each round, stays empty.
TEST(time_slicing, holds_fillers_to_their_slots_if_not_work_conserving) {
  Scenario round = a100({filler(gib(1)), filler(gib(1))});
  round.fillers[1].dies_at = 5ms;
  round.horizon = 8500us;
  const Outcome outcome =
      drive("time_slicing", {"slice=2ms", "filler_slice=1ms", "work_conserving=false"}, round);
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{0ms, "preempt 1 context_switch"},
                          Done{0ms, "preempt 2 context_switch"}, Done{2ms, "proceed 1"},
                          Done{3ms, "preempt 1 context_switch"}, Done{3ms, "proceed 2"},
                          Done{4ms, "preempt 2 context_switch"}, Done{6ms, "proceed 1"},
                          Done{7ms, "preempt 1 context_switch"}));
  EXPECT_THAT(drive("time_slicing", {}, round).done, IsEmpty());
}

TEST(mps, refuses_a_filler_above_its_memory_limit) {
  const Scenario two = a100({filler(gib(3)), filler(gib(2))});
  const Outcome outcome = drive("mps", {"filler_memory_limit_mib=2048"}, two);
  EXPECT_EQ(outcome.admissions[0].reason, "needs 3GiB, a filler may have 2GiB");
  EXPECT_TRUE(outcome.admissions[1].admitted);
  EXPECT_EQ(outcome.clients[0].memory_limit, std::nullopt);
  EXPECT_EQ(outcome.clients[1].memory_limit, gib(2));
  EXPECT_TRUE(drive("mps", {}, two).admissions[0].admitted);
}

TEST(mps, lifts_fillers_if_told) {
  const Outcome outcome = drive("mps", {"priority=filler"}, a100({filler(gib(1))}));
  EXPECT_GT(outcome.clients[1].priority, outcome.clients[0].priority);
}

// Policies that drive fillers off the GPU when training launches: small scenarios with numbers to
// check by hand.

/// A GPU whose memory plays no part; one filler that launches as fast as it may.
Scenario compute_scenario(Duration horizon, std::vector<Call> kernels, std::uint64_t launches,
                          std::vector<Call> training = {}) {
  Scenario result;
  result.gpu = {.name = "GPU", .sm_count = 100, .tpc_sms = 2, .memory = {},
                .time_slice = 1ms, .context_switch = 50us};
  result.fillers = {{Role::kOffline, std::move(kernels), launches, 0ns, {}, false}};
  result.horizon = horizon;
  result.training = std::move(training);
  return result;
}

Call train(Instant at, std::uint64_t blocks, Duration length) {
  return {at, WorkKind::kKernel, blocks, length, 100};
}

std::size_t at(const Outcome& outcome, Instant when) {
  return outcome.count(1, when, when + 1ns);
}

/// Four in flight at once, kernels of 1 ms, batches of two. At 0 four launch; the first two end at
/// 1 and 2 ms: two launch; so at 4 ms and at 6 ms.
TEST(xsched, bounds_what_is_in_flight_and_wakes_by_batches) {
  const Scenario alone = compute_scenario(6500us, {kernel(1, 1ms)}, 100);
  const Outcome batch = drive("xsched", {"threshold=4", "batch=2"}, alone);
  EXPECT_THAT(batch.times(1), ElementsAre(Duration{0}, Duration{0}, Duration{0}, Duration{0}, 2ms,
                                          2ms, 4ms, 4ms, 6ms, 6ms));
  const Outcome each_wakes = drive("xsched", {"threshold=4", "batch=2", "wake=each"}, alone);
  EXPECT_EQ(at(each_wakes, 0ms), 4u);
  EXPECT_EQ(at(each_wakes, 1ms), 1u);
  EXPECT_EQ(at(each_wakes, 2ms), 1u);
}

/// Training runs from 2.5 to 3.5 ms. Four were in flight (two of 0 ms, two of 2 ms): level 1 lets
/// them run, the last until 6 ms, and launches no more before 3.5 ms. At 3.5 ms three are in flight
/// (they end at 4, 5 and 6 ms): the next batch goes at 4 ms.
TEST(xsched, launches_no_more_while_training_has_work_at_level_one) {
  Scenario single = compute_scenario(4500us, {kernel(1, 1ms)}, 100, {train(2500us, 100, 1ms)});
  const Outcome outcome = drive("xsched", {"threshold=4", "batch=2"}, single);
  EXPECT_THAT(outcome.done, IsEmpty());
  EXPECT_EQ(outcome.count(1, 2500us, 3500us), 0u);
  EXPECT_EQ(at(outcome, 4ms), 2u);
  EXPECT_EQ(outcome.counts.count("xsched_suspensions"), 1u);
}

/// The kernel that runs at 2.5 ms ends at 3 ms, the other three wait until 3.5 ms.
TEST(xsched, withdraws_what_has_not_begun_at_level_two) {
  Scenario single = compute_scenario(5ms, {kernel(1, 1ms)}, 100, {train(2500us, 100, 1ms)});
  const Outcome outcome = drive("xsched", {"level=2", "threshold=4", "batch=2"}, single);
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{2500us, "preempt 1 after_kernel"}, Done{3500us, "proceed 1"}));
  EXPECT_EQ(outcome.count(1, 2500us, 3501us), 0u);  // three in flight, more than 4 - 2
  EXPECT_EQ(outcome.count(1, 3501us, 5ms), 2u);     // when one more has ended
}

/// XSched has its level 2 for GPUs like the RTX 3090 (8.6), and none for the A100 (8.0).
TEST(xsched, refuses_level_two_where_its_code_has_none) {
  Scenario a100 = compute_scenario(5ms, {kernel(1, 1ms)}, 100);
  a100.gpu.compute_capability = 80;
  EXPECT_EQ(drive("xsched", {"level=2"}, a100).admissions[0].reason,
            "xsched: level 2 exists for compute capabilities 3.5, 7.0 and 8.6 only");
  EXPECT_TRUE(drive("xsched", {"level=3"}, a100).admissions[0].admitted);
  a100.gpu.compute_capability = 86;
  EXPECT_TRUE(drive("xsched", {"level=2"}, a100).admissions[0].admitted);
}

TEST(xsched, takes_the_context_off_at_level_three) {
  Scenario single = compute_scenario(5ms, {kernel(1, 1ms)}, 100, {train(2500us, 100, 1ms)});
  const Outcome outcome = drive("xsched", {"level=3", "sharing=spatial"}, single);
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kTimeSliced);
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{2500us, "preempt 1 context_switch"}, Done{3500us, "proceed 1"}));
}

/// Two of 1 ms are in flight. Training at 1.5 ms: the queued one withdraws, the running one is
/// killed 40 us later and begins again at 2.5 ms, when training has ended: it ends at 3.5 ms.
TEST(reef, kills_running_kernels_after_the_latency) {
  Scenario single = compute_scenario(3600us, {kernel(100, 1ms)}, 100, {train(1500us, 100, 1ms)});
  const Outcome outcome = drive("reef", {"mode=reset"}, single);
  EXPECT_THAT(outcome.times(1), ElementsAre(Duration{0}, Duration{0}, 1ms, 3500us));
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{1500us, "preempt 1 after_blocks"}, Done{1540us, "preempt 1 reset"},
                          Done{2500us, "proceed 1"}));
  EXPECT_EQ(outcome.counts.count("reef_resets"), 1u);
}

TEST(reef, kills_nothing_if_training_is_shorter_than_the_latency) {
  Scenario single = compute_scenario(3600us, {kernel(100, 1ms)}, 100, {train(1500us, 100, 30us)});
  EXPECT_THAT(drive("reef", {"mode=reset"}, single).done,
              ElementsAre(Done{1500us, "preempt 1 after_blocks"}, Done{1530us, "proceed 1"}));
}

/// Three of 1 ms are in flight. Training at 1.5 ms stops the second for 2 ms, and with it the two
/// behind it; it ends at 4 ms, so that a fifth is launched. None is killed.
TEST(reef, stops_what_is_in_flight_under_wait) {
  Scenario single = compute_scenario(5ms, {kernel(100, 1ms)}, 100, {train(1500us, 100, 2ms)});
  const Outcome outcome = drive("reef", {"mode=wait", "wait_capacity=3"}, single);
  EXPECT_THAT(outcome.done, ElementsAre(Done{1500us, "preempt 1 after_blocks"},
                                        Done{3500us, "proceed 1"}));
  EXPECT_THAT(outcome.times(1), ElementsAre(Duration{0}, Duration{0}, Duration{0}, 1ms, 4ms));
  EXPECT_EQ(outcome.counts.count("reef_resets"), 0u);
}

/// Training's kernel of 60 blocks leaves 40 of 100 SMs for 1 ms, from 1 ms on. The filler's kernel
/// has 400 blocks in 4 waves of 50 us. It was killed at 1.04 ms, goes on beside training at once,
/// and must begin no wave after 2 ms - 50 us.
TEST(reef, pads_a_short_kernel_beside_trainings) {
  Scenario single = compute_scenario(3ms, {kernel(400, 200us)}, 100, {train(1ms + 50us, 60, 1ms)});
  const Outcome outcome = drive("reef", {}, single);
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{1050us, "preempt 1 after_blocks"}, Done{1090us, "preempt 1 reset"},
                          Done{1090us, "percentage 1 40"}, Done{1090us, "proceed 1"},
                          Done{2000us, "percentage 1 100"},
                          Done{2000us, "preempt 1 after_blocks"}, Done{2050us, "proceed 1"}));
  EXPECT_EQ(outcome.counts.count("reef_paddings"), 1u);
  // The one that was killed ends at 1.29 ms, and in padding others follow.
  EXPECT_EQ(at(outcome, 1290us), 1u);
}

/// Waves of 50 us beside a kernel of 30 us, or beside one that has the whole GPU: none.
TEST(reef, pads_nothing_that_is_longer_or_finds_no_room) {
  Scenario single = compute_scenario(3ms, {kernel(400, 200us)}, 100, {train(1050us, 60, 80us)});
  EXPECT_EQ(drive("reef", {}, single).counts.count("reef_paddings"), 0u);  // 80 - 40 < 50
  single.training = {train(1050us, 100, 1ms)};
  EXPECT_EQ(drive("reef", {}, single).counts.count("reef_paddings"), 0u);
  single.training = {train(1050us, 60, 1ms)};
  single.fillers[0].kernels[0].sm_blocks = 0;
  const Outcome unknown = drive("reef", {}, single);
  EXPECT_EQ(unknown.counts.count("reef_paddings"), 0u);
  EXPECT_GT(unknown.counts.count("reef_unprofiled_launches"), 0u);
}

/// 1000 blocks on 100 SMs in 1 ms: ten waves of 100 us; one worker an SM retreats within
/// 1.2 ms / 10 / 2 = 60 us, so a limit of 60 us takes it, and all that fit are resident. The first
/// launch waits until training has
/// been idle for 100 us. At 250 us training launches: retreat; it ends at 350 us, and at 450 us
/// the kernel goes on. It has run for 150 of 1000 us, so it ends at 1300 us.
TEST(tally, retreats_and_goes_on_after_the_wait) {
  Scenario single = compute_scenario(1400us, {kernel(1000, 1ms)}, 100, {train(250us, 100, 100us)});
  const Outcome outcome = drive("tally", {"turnaround=60us"}, single);
  EXPECT_THAT(outcome.times(1), ElementsAre(100us, 1300us));
  EXPECT_THAT(outcome.done,
              ElementsAre(Done{100us, "reshape 1 0"}, Done{250us, "preempt 1 after_blocks"},
                          Done{450us, "proceed 1"}, Done{1300us, "reshape 1 0"}));
  EXPECT_EQ(outcome.counts.count("tally_retreats"), 1u);
}

/// Ten waves in 60 us end within the turnaround, and workers keep 1 / 1.2 of the speed. After
/// 100 ms of idleness the next one is launched as it is.
TEST(tally, launches_originals_once_training_has_been_idle_for_long) {
  Scenario single = compute_scenario(103ms, {kernel(1000, 60us)}, 10000);
  const Outcome outcome = drive("tally", {"turnaround=60us"}, single);
  ASSERT_FALSE(outcome.done.empty());
  EXPECT_EQ(outcome.done.back().what, "reshape 1 0");
  EXPECT_GE(outcome.done.back().at, 100ms - 60us);
  EXPECT_LT(outcome.done.back().at, 100ms);
  EXPECT_GT(outcome.counts.count("tally_original_launches"), 40u);  // 3 ms of 60 us
  const Outcome never = drive("tally", {"turnaround=60us", "original_after=0ns"}, single);
  EXPECT_EQ(never.counts.count("tally_original_launches"), 0u);
}

/// Kernels of no more blocks than SMs are left as they are, and run on beside training.
TEST(tally, leaves_small_kernels_in_their_form) {
  Scenario single = compute_scenario(2ms, {kernel(100, 1ms)}, 100, {train(250us, 100, 100us)});
  const Outcome outcome = drive("tally", {}, single);
  EXPECT_THAT(outcome.done, IsEmpty());
  EXPECT_THAT(outcome.times(1), ElementsAre(100us, 1100us));
  EXPECT_EQ(outcome.counts.count("tally_original_launches"), 2u);
}

/// A kernel of cuBLAS runs from 0.1 to 1.1 ms, whatever training launches. Where CUTLASS replaces
/// it, it retreats, and training's kernels are CUTLASS's, too.
TEST(tally, cannot_stop_kernels_of_libraries_unless_they_are_replaced) {
  Scenario single = compute_scenario(2ms, {kernel(1000, 1ms, KernelClass::kCompute)}, 100);
  single.training = {train(250us, 100, 100us)};
  single.training[0].bound = KernelClass::kCompute;
  const Outcome original = drive("tally", {"turnaround=60us", "libraries=original"}, single);
  EXPECT_THAT(original.done, IsEmpty());
  EXPECT_THAT(original.times(1), ElementsAre(100us, 1100us));
  const Outcome replaced = drive("tally", {"turnaround=60us", "library_slowdown=1.5"}, single);
  EXPECT_EQ(replaced.counts.count("tally_retreats"), 1u);
  EXPECT_THAT(replaced.done, Contains(Done{250us, "reshape 0 0"}));
}

/// Two fillers take turns, one kernel in flight.
TEST(tally, has_one_kernel_in_flight) {
  Scenario two = compute_scenario(1ms, {kernel(10, 200us)}, 100);
  two.fillers.push_back(two.fillers[0]);
  const Outcome outcome = drive("tally", {}, two);
  EXPECT_THAT(outcome.times(1), ElementsAre(100us, 500us, 900us));
  EXPECT_THAT(outcome.times(2), ElementsAre(300us, 700us));
}

/// Its flight dies at 150 us: the other filler's kernel goes.
TEST(tally, goes_on_after_a_filler_that_dies_in_flight) {
  Scenario two = compute_scenario(1ms, {kernel(10, 200us)}, 100);
  two.fillers.push_back(two.fillers[0]);
  two.fillers[0].dies_at = 150us;
  EXPECT_THAT(drive("tally", {}, two).times(2), ElementsAre(150us, 350us, 550us, 750us, 950us));
}

/// Kernels of 100 us, one after the other: two by two.
TEST(tally_tgs, launches_by_the_number_in_flight_once_all_have_ended) {
  const Scenario single = compute_scenario(1ms, {kernel(10, 100us)}, 100);
  const Outcome outcome = drive("tally_tgs", {"in_flight=2"}, single);
  EXPECT_THAT(outcome.times(1), ElementsAre(0us, 0us, 200us, 200us, 400us, 400us, 600us, 600us,
                                            800us, 800us));
  EXPECT_EQ(outcome.clients[0].priority, 1);
  EXPECT_EQ(outcome.clients[1].priority, 0);
  const Outcome twenty = drive("tally_tgs", {}, single);
  EXPECT_EQ(twenty.times(1).size(), 20U);  // 2 ms of kernels
}

/// Each filler has kernels of its own in flight.
TEST(tally_tgs, counts_each_filler_apart) {
  Scenario two = compute_scenario(350us, {kernel(10, 100us)}, 100);
  two.fillers.push_back(two.fillers[0]);
  two.fillers[0].dies_at = 150us;
  const Outcome outcome = drive("tally_tgs", {"in_flight=1"}, two);
  EXPECT_THAT(outcome.times(1), ElementsAre(0us, 100us));
  EXPECT_THAT(outcome.times(2), ElementsAre(0us, 100us, 200us, 300us));
}

}  // namespace
}  // namespace bubblesim::testing
