// Policies that run fillers while training has nothing outstanding, while it waits for its peers:
// `collectives: work` leaves that time alone, `idle` takes it. Numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;

/// Training computes until 1 ms, is in a collective until 6 ms, and computes from 8.5 to 9.5 ms. A
/// filler has kernels of 1 ms and as many blocks.
Scenario exchange(std::uint64_t blocks, Duration horizon = 9300us) {
  Scenario result = scenario(horizon, {kernel(blocks, 1ms)}, 100);
  result.training = {{0ms, WorkKind::kKernel, 100, 1ms, 100},
                     {500us, WorkKind::kCollective, 24, 5ms},
                     {8500us, WorkKind::kKernel, 100, 1ms, 100}};
  return result;
}

/// Two in flight, one goes when one has ended.
TEST(collectives, are_work_to_xsched_unless_told) {
  const Outcome work = drive("xsched", {"threshold=2", "wake=each"}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6ms, 6ms, 7ms, 8ms));
  const Outcome idle =
      drive("xsched", {"threshold=2", "wake=each", "collectives=idle"}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms));
}

/// Of its two in flight none runs on beside training's kernel at 8.5 ms, but all beside the
/// collective.
TEST(collectives, are_work_to_reef_unless_told) {
  const Outcome work = drive("reef", {"mode=reset"}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6ms, 6ms, 7ms, 8ms));
  const Outcome idle = drive("reef", {"mode=reset", "collectives=idle"}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms));
  EXPECT_THAT(idle.done, ElementsAre(Done{8500us, "preempt 1 after_blocks"},
                                     Done{8540us, "preempt 1 reset"}));
}

/// 0.1 ms after training's kernel has ended, and then one after the other.
TEST(collectives, are_work_to_tally_unless_told) {
  const Outcome work = drive("tally", {}, exchange(100));
  EXPECT_THAT(work.times(1), ElementsAre(6100us, 7100us, 8100us));
  const Outcome idle = drive("tally", {"collectives=idle"}, exchange(100));
  EXPECT_THAT(idle.times(1), ElementsAre(1100us, 2100us, 3100us, 4100us, 5100us, 6100us, 7100us,
                                         8100us));
}

/// Kernels of ten waves are too large to run beside training. Two of 1 ms exceed the limit of 1 ms,
/// and must have ended before the next two. After 6 ms training waits for nothing, and is within
/// its iteration.
TEST(collectives, are_work_to_orion_unless_told) {
  EXPECT_THAT(drive("orion", {"max_duration=1ms"}, exchange(1000)).times(1), IsEmpty());
  const Outcome idle = drive("orion", {"max_duration=1ms", "collectives=idle"}, exchange(1000));
  EXPECT_THAT(idle.times(1), ElementsAre(1ms, 1ms, 3ms, 3ms, 5ms, 5ms));
}

/// From 1 to 6 ms turns are the device's 1 ms, and then training's and the filler's own again. A
/// turn that is ended is asked for again 1 us later; the collective stands still meanwhile.
TEST(collectives, are_work_to_gpreempt_unless_told) {
  EXPECT_THAT(drive("gpreempt", {}, exchange(100)).done, IsEmpty());
  EXPECT_THAT(
      drive("gpreempt", {"collectives=idle"}, exchange(100)).done,
      ElementsAre(Done{1ms, "slice 0 1ms"}, Done{1ms, "preempt 0 context_switch"},
                  Done{1ms, "slice 1 1ms"}, Done{1001us, "proceed 0"}, Done{6001us, "slice 0 1s"},
                  Done{6001us, "slice 1 1us"},
                  Done{6001us, "preempt 1 context_switch"},
                  Done{6002us, "proceed 1"}));
}

}  // namespace
}  // namespace bubblesim::testing
