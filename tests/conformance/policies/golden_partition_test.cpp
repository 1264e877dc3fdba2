// Policies that decide before the start, and the fixed round of time slices: one small scenario
// each, with numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;

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

}  // namespace
}  // namespace bubblesim::testing
