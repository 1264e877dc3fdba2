// vcuda, Orion, Dilu, AntMan, TGS, and what SpecInF does by iterations: one small scenario
// each, with numbers to check by hand.
#include <gmock/gmock.h>

#include "tests/conformance/policies/scenarios.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;
using ::testing::ElementsAre, ::testing::IsEmpty;

Call at(Instant when, Call call) {
  call.at = when;
  return call;
}

constexpr KernelClass kCompute = KernelClass::kCompute;
constexpr KernelClass kMemory = KernelClass::kMemory;

/// 100 SMs: steps of 80,000 tokens. A kernel of 200,000 blocks passes at 0, the next one waits; of
/// the first sample its 10 us are 1 %. 49 below the limit is 80,000 x 49 / 10 x 98 / 51 = 753,254:
/// at 1 ms the bucket holds 553,254, three kernels. They are 3 % of the second sample: 693,019 more
/// a refill, 1,446,273, so 1,399,527 at 2 ms, seven kernels.
TEST(vcuda, lets_pass_what_its_tokens_cover) {
  const Scenario scene = scenario(2500us, {kernel(200'000, 10us)}, 100);
  const Outcome outcome =
      drive("vcuda", {"filler_limit=50", "refill=1ms", "sample=1ms", "poll=100us"}, scene);
  EXPECT_EQ(outcome.sharing.mode, SharingMode::kTimeSliced);
  EXPECT_EQ(outcome.count(1, 0ms, 1ms), 1u);
  EXPECT_EQ(outcome.count(1, 1ms, 2ms), 3u);
  EXPECT_EQ(outcome.count(1, 2ms, 2500us), 7u);
}

/// Training launches 10 kernels of 1,000 blocks at once: the second waits for tokens.
TEST(vcuda, holds_training_if_it_has_a_limit) {
  Scenario busy = scenario(2ms, {kernel(1, 10us)}, 1);
  for (int i = 0; i < 10; ++i) busy.training.push_back(at(Instant{i}, kernel(1'000, 10us)));
  const Outcome outcome = drive(
      "vcuda", {"training_limit=80", "refill=1ms", "sample=1ms", "poll=100us"}, busy);
  EXPECT_EQ(outcome.count(0, 0ms, 1ms), 1u);
  EXPECT_EQ(outcome.count(0, 1ms, 2ms), 9u);
}

/// Training launches a kernel bound by compute at 1 ms and one bound by memory at 5 ms; each runs
/// 2 ms. The filler's kernels are bound by compute, 10 us long; 25 us may be outstanding: three
/// (30 us exceed them), then a drain, which takes until 30 us after the first. Before 1 ms
/// training has nothing launched: 34 drains (30 us each) of three begin. From 1 ms on it is busy
/// with the same resource till its kernel of the other kind at 5 ms. Nothing ends the iteration.
/// The filler's largest need is 40 SMs: the threshold was 20, and a step at 500 us made it 30; so
/// its kernels of 40 blocks wait even then. A second filler's of 30 blocks go.
TEST(orion, runs_beside_kernels_that_are_bound_by_something_else) {
  Scenario beside = scenario(6ms, {kernel(40, 10us, kCompute)}, 100000);
  beside.training = {at(1ms, kernel(100, 2ms, kCompute)), at(5ms, kernel(100, 2ms, kMemory))};
  const std::vector<std::string> given{"max_duration=25us", "latency=10ms", "slowdown_limit=2",
                                       "search_iterations=1", "update_start=0"};
  beside.iteration_ends = {500us};
  Scenario small = beside;
  small.fillers.push_back(small.fillers[0]);
  small.fillers[0].launches = 1;
  small.fillers[1].kernels = {kernel(30, 10us, kCompute)};
  EXPECT_EQ(drive("orion", given, small).count(2, 1ms, 5ms), 0u);
  EXPECT_GT(drive("orion", given, small).count(2, 5ms, 6ms), 90u);
  const Outcome outcome = drive("orion", given, beside);
  EXPECT_EQ(outcome.count(1, 0us, 30us), 3u);
  EXPECT_EQ(outcome.count(1, 30us, 60us), 3u);
  EXPECT_EQ(outcome.count(1, 0ms, 1ms), 102u);  // 33 drains and a third: 990 us begins the 34th
  EXPECT_EQ(outcome.count(1, 1ms, 5ms), 0u);
  EXPECT_EQ(outcome.count(1, 5ms, 6ms), 0u);
  EXPECT_EQ(outcome.clients[0].priority, 1);
  EXPECT_EQ(outcome.clients[1].priority, 0);
}

/// Beside a service there is no search: all 100 SMs. A kernel of 100 blocks goes, one of 101 waits
/// until the request has ended, at 9 ms.
TEST(orion, caps_kernels_by_the_number_of_sms_beside_a_service) {
  Scenario service = scenario(10ms, {kernel(100, 10us, kMemory), kernel(101, 10us, kMemory)}, 2);
  service.training_role = Role::kOnline;
  service.fillers[0].gap = 2ms;
  service.training = {at(0ms, kernel(100, 3ms, kCompute))};
  service.iteration_ends = {9ms};
  const Outcome outcome = drive("orion", {"max_duration=1ms"}, service);
  EXPECT_THAT(outcome.times(1), ElementsAre(Duration{0}, 9ms));
}

/// Nothing is known of the iteration's length: one kernel at a time. Once one of 10 ms has ended,
/// 2.5 %: 250 us, so three of 100 us.
TEST(orion, takes_its_duration_limit_from_the_shortest_iteration) {
  Scenario unknown = scenario(12ms, {kernel(1, 100us)}, 100000);
  unknown.training = {at(0ms, kernel(100, 20ms))};
  unknown.training[0].kind = WorkKind::kCollective;
  unknown.iteration_ends = {10ms};
  const Outcome outcome = drive("orion", {"search_iterations=1000"}, unknown);
  EXPECT_EQ(outcome.count(1, 0us, 100us), 0u);  // beside training: half of one SM is none
  unknown.fillers[0].kernels[0].blocks = 0;     // needs none
  const Outcome small = drive("orion", {}, unknown);
  EXPECT_EQ(small.count(1, 1ms, 1100us), 1u);
  EXPECT_EQ(small.count(1, 11ms, 11300us), 3u);
}

/// The host of training marks its iteration's end at 2 ms, the GPU has it done at 4. Kernels of ten
/// waves wait until then.
TEST(orion, waits_for_the_iteration_of_a_host_that_runs_ahead) {
  Scenario ahead = scenario(5ms, {kernel(1000, 2ms)}, 100);
  ahead.training = {at(0ms, kernel(100, 2ms)), at(1ms, kernel(100, 2ms))};
  ahead.iteration_ends = {2ms};
  EXPECT_THAT(drive("orion", {"max_duration=1ms", "barrier=fillers"}, ahead).times(1),
              ElementsAre(4ms));
}

/// Training's iteration is marked at 0.5 ms and runs until 2 ms. What the host launches at 1 ms,
/// 0.5 behind the mark, goes on 0.5 ms after that end; meanwhile the filler's ten waves go, every
/// 0.2 ms.
TEST(orion, makes_training_wait_for_the_end_of_its_iteration) {
  Scenario waits = scenario(4ms, {kernel(1000, 100us)}, 100);
  waits.fillers[0].gap = 200us;
  waits.training = {at(0ms, kernel(100, 2ms)), at(1ms, kernel(100, 2ms))};
  waits.iteration_ends = {500us};
  const Outcome outcome = drive("orion", {"max_duration=1ms"}, waits);
  EXPECT_THAT(outcome.times(0), ElementsAre(Duration{0}, 2500us));
  EXPECT_THAT(outcome.times(1), ElementsAre(2ms, 2200us, 2400us));
  EXPECT_EQ(outcome.training_held, 1u);
}

/// An iteration begins with a copy of 1 ms; its first kernel comes at 0.5 ms. Kernels alone are
/// counted, so ten waves go until then; beside a host that runs ahead the copy may be the last
/// iteration's.
TEST(orion, counts_nothing_as_launched_before_the_first_kernel) {
  Scenario copies = scenario(2ms, {kernel(1000, 10us)}, 100);
  copies.fillers[0].gap = 200us;
  Call copy = at(0ms, kernel(0, 1ms));
  copy.kind = WorkKind::kCopy;
  copies.training = {copy, at(500us, kernel(100, 2ms))};
  EXPECT_THAT(drive("orion", {}, copies).times(1), ElementsAre(Duration{0}, 200us, 400us));
  EXPECT_THAT(drive("orion", {"barrier=fillers"}, copies).times(1), IsEmpty());
}

/// By default from the end of an iteration's first kernel on, at 2 ms, copies not counted.
TEST(orion, lets_small_kernels_go_after_the_first_one_of_training) {
  Scenario small = scenario(3ms, {kernel(10, 1us, kCompute)}, 1);
  small.fillers.push_back(small.fillers[0]);
  small.fillers[1].kernels = {kernel(30, 1us, kCompute)};
  Call copy = at(0ms, kernel(0, 0us));
  copy.kind = WorkKind::kCopy;
  small.training = {copy, at(0ms, kernel(100, 2ms, kCompute)), at(0ms, kernel(100, 2ms, kCompute))};
  EXPECT_THAT(drive("orion", {}, small).times(1), ElementsAre(2ms));  // half of 30 SMs
  EXPECT_THAT(drive("orion", {}, small).times(2), IsEmpty());
  EXPECT_THAT(drive("orion", {"update_start=0"}, small).times(1), IsEmpty());
}

/// The filler's copies go at any time; a training that is silent for a second has stopped.
TEST(orion, lets_copies_pass_and_notices_that_training_has_stopped) {
  Scenario stops = scenario(3s, {kernel(50, 1us, kCompute)}, 1);
  stops.training = {at(0ms, kernel(100, 5ms, kCompute))};
  stops.fillers.push_back(stops.fillers[0]);
  stops.fillers[1].kernels = {{{}, WorkKind::kCopy, 0, 1us}};
  const Outcome outcome = drive("orion", {}, stops);
  EXPECT_THAT(outcome.times(2), ElementsAre(Duration{0}));
  EXPECT_THAT(outcome.times(1), ElementsAre(1005ms));  // its kernel completed at 5 ms
}

/// Past the third launch of an iteration, and that one completed at 4 ms, size is all that counts.
TEST(orion, opens_during_the_weight_update) {
  Scenario update = scenario(20ms, {kernel(10, 1us, kCompute), kernel(30, 1us, kCompute)}, 1000);
  update.fillers[0].launches = 1;
  update.fillers[0].kernels = {kernel(10, 1us, kCompute)};
  update.fillers.push_back(update.fillers[0]);
  update.fillers[1].kernels = {kernel(30, 1us, kCompute)};
  for (int i = 0; i < 6; ++i) update.training.push_back(at(1ms * i, kernel(100, 2ms, kCompute)));
  // At 0 training launches first. The threshold is half of 30.
  const std::vector<std::string> given{"update_start=3"};
  const Outcome outcome = drive("orion", given, update);
  EXPECT_THAT(outcome.times(1), ElementsAre(6ms));  // three kernels of 2 ms
  EXPECT_THAT(outcome.times(2), IsEmpty());
}

/// A whole GPU is 1000 blocks a period of 5 ms, a quota of a tenth. Training has request 1: 100
/// blocks a period; a service 0.3. Training wants 30 blocks each millisecond, 150 a period, beside
/// a service that launches all the time.
std::vector<std::string> small_dilu() {
  return {"upper_blocks=1000", "training_request=1", "training_limit=1", "poll=1ms"};
}

Scenario service_beside_training() {
  Scenario result = scenario(50ms, {kernel(10, 1us)}, 100000);
  result.fillers[0].role = Role::kOnline;
  result.fillers[0].gap = 1ms;
  for (int i = 0; i < 50; ++i) result.training.push_back(at(1ms * i, kernel(30, 1us)));
  return result;
}

/// Until the first period ends nothing is known of a service: training's grant is the whole GPU.
/// At 5 ms training reports first and gets the pool of then, 100; its count of 150 falls to 50: two
/// pass (at 50 and 80), then 110 waits. At 10 ms 110 falls to 10: 10, 40, 70, 100 pass: four, 130.
/// At 15 ms it falls to 30: 30, 60, 90: three, 120. Then 20: 20, 50, 80: three, 110. Then four.
TEST(dilu, throttles_training_beside_a_busy_service_and_never_starves_it) {
  const Outcome outcome = drive("dilu", small_dilu(), service_beside_training());
  EXPECT_EQ(outcome.count(0, 0ms, 5ms), 5u);
  EXPECT_EQ(outcome.count(0, 5ms, 10ms), 2u);
  EXPECT_EQ(outcome.count(0, 10ms, 15ms), 4u);
  EXPECT_EQ(outcome.count(0, 15ms, 20ms), 3u);
  EXPECT_EQ(outcome.count(0, 20ms, 25ms), 3u);
  EXPECT_EQ(outcome.count(0, 25ms, 30ms), 4u);
  EXPECT_GT(outcome.training_held, 0u);
  EXPECT_EQ(outcome.count(1, 0ms, 50ms), 50u);  // the service has 300 a period
}

TEST(dilu, leaves_training_alone_if_told) {
  std::vector<std::string> given = small_dilu();
  given.push_back("barrier=fillers");
  EXPECT_EQ(drive("dilu", given, service_beside_training()).training_held, 0u);
}

/// Training at the floor: bursts of a service that get ever longer cut the quota to 1 % of 1000
/// blocks, 10 a period; a kernel of 30 then passes every three periods. In each second at least
/// 1000 / 15 = 66 do.
TEST(dilu, keeps_training_going_at_the_floor) {
  Scenario cut = scenario(4s, {kernel(10, 1us)}, 100000);
  cut.training.assign(2000, at(0ms, kernel(30, 1us)));
  cut.fillers[0].role = Role::kOnline;
  cut.fillers[0].gap = 1ms;
  std::vector<std::string> given = small_dilu();
  given.push_back("initial_share=0.01");
  const Outcome outcome = drive("dilu", given, cut);
  for (Instant from = 1s; from < 4s; from += 1s) EXPECT_GE(outcome.count(0, from, from + 1s), 66u);
}

/// A service that has been idle for 121 periods gives its place: training has its limit.
TEST(dilu, gives_training_its_limit_while_services_are_idle) {
  Scenario idle = service_beside_training();
  idle.horizon = 1s;
  idle.fillers[0].launches = 1;
  idle.training.assign(1000, at(700ms, kernel(3, 1us)));
  const Outcome outcome = drive("dilu", small_dilu(), idle);
  EXPECT_EQ(outcome.count(0, 700ms, 705ms), 334u);  // 0, 3, ..., 999 of 1000
}

/// Iterations of 100 ms; one is measured, during which fillers are suspended. Then p is 50. A
/// mini-batch has four kernels of 1 ms, each launched when the one before has ended. Suspended
/// since 0, the filler looks at 100 ms. Its mini-batch takes 4 ms; 8 less 4 ms less 50 us are
/// slept, and as much again within the next one, 987.5 us before each kernel: 107.95 + 0.9875, then
/// every 1.9875 ms. It ends at 115.9 ms, and no sleep is missing.
TEST(antman, sleeps_after_one_mini_batch_and_within_the_next) {
  Scenario batches = scenario(120ms, {kernel(1, 1ms)}, 9);
  batches.fillers[0].pass = 4;
  batches.fillers[0].gap = 1ms;
  batches.training = {at(0ms, kernel(1, 1us)), at(101ms, kernel(1, 1us))};
  batches.iteration_ends = {100ms};
  const Outcome outcome =
      drive("antman", {"reference_iterations=1", "first_percentage=50", "reserve_mib=0"}, batches);
  EXPECT_TRUE(outcome.sharing.unified_memory);
  EXPECT_THAT(outcome.times(1), ElementsAre(100ms, 101ms, 102ms, 103ms, Duration{108937500},
                                            110925us, Duration{112912500}, 114900us, 115900us));
}

/// p is 0 in the first iteration, then 10, 20, 30: so many kernels of 1 ms in 100 ms. At 10: at
/// 100, then 9 ms are slept after it and 9 ms before the next, so at 119, 120, 139, ...
TEST(antman, is_suspended_until_the_reference_is_known) {
  Scenario control = scenario(400ms, {kernel(1, 1ms)}, 100000);
  control.fillers[0].pass = 1;
  control.fillers[0].gap = 1ms;
  for (int i = 0; i < 40; ++i) control.training.push_back(at(10ms * i, kernel(1, 1us)));
  control.iteration_ends = {100ms, 200ms, 300ms};
  const Outcome outcome =
      drive("antman", {"reference_iterations=1", "increase=10", "fixed_cost=0ns"}, control);
  EXPECT_EQ(outcome.count(1, 0ms, 100ms), 0u);
  EXPECT_EQ(outcome.count(1, 100ms, 200ms), 10u);
  EXPECT_EQ(outcome.count(1, 200ms, 300ms), 20u);
  EXPECT_EQ(outcome.count(1, 300ms, 398ms), 29u);  // at 300 and 305 2/3, every 6 2/3 ms
}

TEST(antman, gives_the_gpu_to_fillers_when_training_has_stopped) {
  Scenario stops = scenario(2s, {kernel(1, 1ms)}, 5);
  stops.training = {at(10ms, kernel(1, 1us))};
  const Outcome outcome = drive("antman", {}, stops);
  EXPECT_THAT(outcome.times(1), ElementsAre(1010ms, 1010ms, 1010ms, 1010ms, 1010ms));
  EXPECT_EQ(outcome.counts.count("antman_fillers_without_batches"), 1u);
}

/// 40 GiB of training, 1 kept free: 39 for fillers of 30 and 20. When the first one dies, the
/// second one's memory comes in at the end of its mini-batch.
TEST(antman, overflows_memory_to_the_host) {
  Scenario large = scenario(20ms, {kernel(1, 3ms)}, 100);
  large.fillers[0].memory = gib(30);
  large.fillers[0].dies_at = 4ms;
  large.fillers.push_back({Role::kOffline, {kernel(1, 3ms)}, 100, 1s, gib(20), true});
  large.fillers[1].pass = 1;
  large.fillers[1].gap = 5ms;
  const Outcome outcome = drive("antman", {"control=fixed", "percentage=100"}, large);
  EXPECT_EQ(outcome.clients[0].resident, gib(40));
  EXPECT_EQ(outcome.clients[1].resident, gib(30));
  EXPECT_EQ(outcome.clients[2].resident, gib(9));
  EXPECT_THAT(outcome.done, ElementsAre(Done{8ms, "resident 2 20GiB"}));
}

/// As antman's, but at once.
TEST(tgs, keeps_training_resident_and_pages_what_is_too_much) {
  Scenario large = scenario(20ms, {kernel(1, 3ms)}, 100);
  large.fillers[0].memory = gib(30);
  large.fillers[0].dies_at = 4ms;
  large.fillers.push_back({Role::kOffline, {kernel(1, 3ms)}, 100, 1s, gib(20), true});
  const Outcome outcome = drive("tgs", {}, large);
  EXPECT_EQ(outcome.clients[0].resident, gib(40));
  EXPECT_EQ(outcome.clients[2].resident, gib(9));
  EXPECT_THAT(outcome.done, ElementsAre(Done{4ms, "resident 2 20GiB"}));
}

}  // namespace
}  // namespace bubblesim::testing
