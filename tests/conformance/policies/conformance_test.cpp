// What every policy must keep to, whatever it decides. Scenarios: training that launches for half
// a second and then stops, beside fillers of every kind.
#include <gmock/gmock.h>

#include <algorithm>

#include "policies/builtin.hpp"
#include "sim/policy/parameter_check.hpp"
#include "tests/conformance/policies/scenarios.hpp"
#include "tests/conformance/policies/no_actions.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;
using namespace std::chrono_literals;

/// A kernel of 100 blocks and 200 us each millisecond of 500 ms, but for 20 ms of each 100 ms,
/// which are a profiled bubble. After 500 ms nothing: training has stopped.
Scenario training_that_stops(Duration horizon) {
  Scenario scenario;
  scenario.gpu = {"GPU", 100, 2, Bytes{80ull << 30}, 1ms, 50us};
  scenario.gpu.mig = {7, 8, 14};
  scenario.training_memory = Bytes{40ull << 30};
  for (int ms = 0; ms < 500; ++ms) {
    if (ms % 100 < 80) scenario.training.push_back({1ms * ms, WorkKind::kKernel, 100, 200us});
  }
  for (int i = 0; i < 5; ++i) {
    const Duration begin = 80ms + 100ms * i;
    scenario.bubbles.push_back({begin, begin + 20ms, {20ms, Bytes{}, true}});
  }
  scenario.horizon = horizon;
  return scenario;
}

Filler filler(std::uint64_t launches, Role role = Role::kOffline) {
  return {role, {{{}, WorkKind::kKernel, 500, 100us}}, launches, 10us, {}, false, 1, {}};
}

/// The parameter is a policy's name, or "name parameter=value" for another of its modes.
class EveryPolicy : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string name() { return GetParam().substr(0, GetParam().find(' ')); }
  [[nodiscard]] static std::vector<std::string> given() {
    const std::size_t space = GetParam().find(' ');
    if (space == std::string::npos) return {};
    return {GetParam().substr(space + 1)};
  }
  [[nodiscard]] static Outcome run(const Scenario& scenario) {
    return drive(name(), given(), scenario);
  }
};

TEST_P(EveryPolicy, decides_the_same_twice) {
  Scenario scenario = training_that_stops(2s);
  scenario.fillers = {filler(3000), filler(2000, Role::kOnline)};
  const Outcome first = run(scenario);
  const Outcome second = run(scenario);
  EXPECT_EQ(first.passed, second.passed);
  EXPECT_EQ(first.ticks, second.ticks);
}

TEST_P(EveryPolicy, never_holds_training_and_lets_all_of_it_pass) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(3000)};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.training_held, 0u);
  EXPECT_EQ(outcome.count(0, 0s, 1s), 400u);  // 80 a 100 ms
}

TEST_P(EveryPolicy, takes_no_illegal_action) {
  Scenario scenario = training_that_stops(2s);
  scenario.fillers = {filler(3000), filler(2000, Role::kOnline), filler(5)};
  scenario.fillers[0].threads = 3;
  EXPECT_THAT(run(scenario).faults, ::testing::IsEmpty());
}

TEST_P(EveryPolicy, sets_legal_percentages) {
  Scenario scenario = training_that_stops(1ms);
  scenario.fillers = {filler(1)};
  for (const ClientSharing& client : run(scenario).clients) {
    EXPECT_GE(client.sm_percentage, 1u);
    EXPECT_LE(client.sm_percentage, 100u);
  }
}

/// A filler that is not admitted has no launch. pipefill and freeride run out of profiled bubbles,
/// and may then hold one launch of each host thread for ever.
TEST_P(EveryPolicy, releases_every_held_launch_after_training_stops) {
  // TGS lifts its limit after at most 10 + 15 reports of 5 s; before it one kernel passes in
  // 50 ms, and after it all do.
  Scenario scenario = training_that_stops(200s);
  scenario.fillers = {filler(20000), filler(20000, Role::kOnline)};
  scenario.fillers[1].threads = 2;
  const Outcome outcome = run(scenario);
  if (name() == "pipefill" || name() == "freeride") {
    EXPECT_THAT(outcome.held_at_end, ::testing::Each(::testing::Le(2u)));
    return;
  }
  EXPECT_THAT(outcome.held_at_end, ::testing::Each(0u));
  for (std::uint32_t id = 1; id <= 2; ++id) {
    const bool admitted = outcome.admissions[id - 1].admitted;
    EXPECT_EQ(outcome.count(id, 0s, 200s), admitted ? 20000u : 0u);
  }
}

/// The clients that are off the GPU at the end: driven off, and never let go on.
std::vector<std::string> off_at_end(const Outcome& outcome) {
  std::vector<std::string> off;
  for (const Done& done : outcome.done) {
    const std::string client = done.what.substr(8, done.what.find(' ', 8) - 8);
    if (done.what.starts_with("preempt ")) off.push_back(client);
    if (done.what.starts_with("proceed ")) std::erase(off, client);
  }
  return off;
}

/// A fixed round goes on after training has stopped: one filler's slot at a time.
TEST_P(EveryPolicy, leaves_no_client_off_the_gpu_after_training_stops) {
  if (GetParam() == "time_slicing work_conserving=false") return;
  Scenario scenario = training_that_stops(10s);
  scenario.fillers = {filler(20000), filler(20000, Role::kOnline)};
  scenario.fillers[0].kernels[0].sm_blocks = 200;
  EXPECT_THAT(off_at_end(run(scenario)), ::testing::IsEmpty());
}

TEST_P(EveryPolicy, survives_no_filler_and_one_that_never_launches) {
  Scenario scenario = training_that_stops(1s);
  EXPECT_THAT(run(scenario).faults, ::testing::IsEmpty());
  scenario.fillers = {filler(0)};
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.faults, ::testing::IsEmpty());
  EXPECT_EQ(outcome.count(0, 0s, 1s), 400u);
}

TEST_P(EveryPolicy, survives_a_filler_that_stops_midway) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(7), filler(1000)};
  EXPECT_THAT(run(scenario).faults, ::testing::IsEmpty());
}

TEST_P(EveryPolicy, survives_a_filler_that_dies_and_serves_the_other) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(100000), filler(100000)};
  scenario.fillers[0].dies_at = 300ms + 5us;
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.faults, ::testing::IsEmpty());
  EXPECT_EQ(outcome.count(1, 301ms, 1s), 0u);
  EXPECT_EQ(outcome.count(0, 0s, 1s), 400u);
}

/// It has work in flight and may be driven off when it dies; no action may name it afterwards.
TEST_P(EveryPolicy, leaves_a_filler_alone_that_has_died) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(5000), filler(5000)};
  scenario.fillers[0].kernels = {{{}, WorkKind::kKernel, 500, 5ms, 200}};
  for (const Duration dies : {Duration{100us}, Duration{240ms + 20us}, Duration{285ms}}) {
    scenario.fillers[0].dies_at = dies;
    const Outcome outcome = run(scenario);
    EXPECT_THAT(outcome.faults, ::testing::IsEmpty());
    for (const Done& done : outcome.done) {
      const std::string client = (done.what + " ").substr(done.what.find(' '), 3);
      EXPECT_FALSE(client == " 1 " && done.at > dies) << done.what;
    }
  }
}

/// Its first kernel runs for longer than the run. The other filler may wait for it for ever, as
/// kernels are not evicted in general; training may not.
TEST_P(EveryPolicy, survives_a_filler_that_never_stops) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(5000), filler(5000, Role::kOnline)};
  scenario.fillers[0].kernels[0].length = 1000s;
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.faults, ::testing::IsEmpty());
  EXPECT_EQ(outcome.count(0, 0s, 1s), 400u);
}

/// Each launch of training reaches the driver in the instant in which it is called.
TEST_P(EveryPolicy, does_not_delay_training) {
  Scenario scenario = training_that_stops(1s);
  scenario.fillers = {filler(5000), filler(5000, Role::kOnline), filler(1000, Role::kTraining)};
  scenario.fillers[0].threads = 4;
  std::vector<Instant> called;
  for (const Call& call : scenario.training) called.push_back(call.at);
  EXPECT_EQ(run(scenario).times(0), called);
}

TEST_P(EveryPolicy, shares_out_no_more_than_there_is) {
  Scenario scenario = training_that_stops(1ms);
  for (int i = 0; i < 9; ++i) scenario.fillers.push_back(filler(1));
  for (Filler& filler : scenario.fillers) {
    filler.memory = Bytes{7ull << 30};
    filler.memory_known = true;
  }
  const Outcome outcome = run(scenario);
  Bytes used = scenario.training_memory;
  std::uint32_t sms = outcome.clients[0].sms;
  double memory_share = outcome.clients[0].memory_share;
  for (std::size_t i = 0; i < scenario.fillers.size(); ++i) {
    const ClientSharing& client = outcome.clients[i + 1];
    if (!outcome.admissions[i].admitted) continue;
    used = used + scenario.fillers[i].memory;
    sms += client.sms;
    memory_share += client.memory_share;
    EXPECT_LE(scenario.fillers[i].memory, client.memory_limit.value_or(scenario.gpu.memory));
  }
  if (!outcome.sharing.unified_memory) {
    EXPECT_LE(used, scenario.gpu.memory);
  }
  EXPECT_LE(sms, scenario.gpu.sm_count);
  if (outcome.sharing.mode == SharingMode::kPartitioned) {
    EXPECT_LE(memory_share, 1.0);
  }
}

TEST_P(EveryPolicy, sets_turns_only_where_contexts_take_turns) {
  Scenario scenario = training_that_stops(1ms);
  scenario.fillers = {filler(1)};
  const Outcome outcome = run(scenario);
  for (const ClientSharing& client : outcome.clients) {
    if (!client.slice) continue;
    EXPECT_EQ(outcome.sharing.mode, SharingMode::kTimeSliced);
    EXPECT_GT(*client.slice, Duration{});
  }
}

TEST_P(EveryPolicy, survives_a_hundred_thousand_launches_in_one_instant) {
  Scenario scenario = training_that_stops(600ms);
  Filler burst = filler(100000);
  burst.gap = 0ns;
  burst.kernels[0].blocks = 1;
  burst.kernels[0].length = 10ns;
  scenario.fillers = {burst};
  scenario.training.assign(100000, {5ms, WorkKind::kKernel, 1, 10ns});
  const Outcome outcome = run(scenario);
  EXPECT_THAT(outcome.faults, ::testing::IsEmpty());
  EXPECT_EQ(outcome.count(0, 5ms, 5ms + 1ns), 100000u);
}

TEST_P(EveryPolicy, survives_kernels_without_blocks_copies_and_collectives) {
  Scenario scenario = training_that_stops(1s);
  Filler mixed = filler(1000);
  mixed.kernels = {{{}, WorkKind::kCopy, 0, 5us},
                   {{}, WorkKind::kMemset, 0, 0ns},
                   {{}, WorkKind::kCollective, 24, 100us},
                   {{}, WorkKind::kKernel, 0, 1us}};
  scenario.fillers = {mixed};
  scenario.training[3].kind = WorkKind::kCollective;
  EXPECT_THAT(run(scenario).faults, ::testing::IsEmpty());
}

/// A wall clock calls late, and not only when something is due.
TEST_P(EveryPolicy, asks_for_a_later_tick_after_each_tick) {
  const Registry registry = policies::builtin_policies();
  const PolicySpec& spec = **registry.find(name());
  std::vector<GivenParameter> parameters;
  const std::vector<std::string> texts = given();
  for (const std::string_view text : texts) {
    const auto equals = text.find('=');
    parameters.push_back({text.substr(0, equals), std::string(text.substr(equals + 1))});
  }
  const auto policy = spec.make(*check_parameters(spec, parameters, "", ""));
  Scenario scenario = training_that_stops(1ms);
  scenario.fillers = {filler(0)};
  (void)drive(*policy, spec, scenario);
  NoActions actions;
  for (const Duration now : {Duration{7ms}, Duration{5123ms}, 60s + 1ns}) {
    policy->on_tick(now, actions);
    const auto next = policy->next_tick();
    if (next) {
      EXPECT_GT(*next, now);
    }
  }
}

std::vector<std::string> names() {
  const Registry registry = policies::builtin_policies();
  std::vector<std::string> names;
  for (const PolicySpec& spec : registry.all()) names.push_back(spec.name);
  return names;
}

std::string test_name(std::string policy) {
  std::ranges::replace_if(policy, [](char c) { return c == ' ' || c == '='; }, '_');
  return policy;
}

INSTANTIATE_TEST_SUITE_P(builtin, EveryPolicy, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test_name(test.param); });
INSTANTIATE_TEST_SUITE_P(other_modes, EveryPolicy,
                         ::testing::Values("time_slicing work_conserving=false",
                                           "mig filler_profile=1g", "green_context training=all",
                                           "reef mode=reset", "reef mode=wait",
                                           "tally turnaround=1us", "xsched level=2",
                                           "xsched level=3", "xsched wake=each",
                                           "xsched collectives=idle", "reef collectives=idle",
                                           "tally collectives=work", "orion collectives=idle",
                                           "gpreempt collectives=idle"),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace bubblesim::testing
