// What launches ask of a policy, and what that costs, by what it declares.
#include "sim/policy/gate_terms.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

constexpr ClientId kGuarded{0};
constexpr ClientId kBeside{1};
constexpr GateCosts kCosts{
    .ask = 3us, .tell = 200ns, .sleep = {.spin = 50us, .wake = 9us}};

PolicySpec with(TrainingGate gate) {
  PolicySpec spec;
  spec.training_gate = [gate](const ParameterSet&) { return gate; };
  return spec;
}

/// What a launch pays at the start.
Duration paid(const PolicySpec& spec, ClientId client, const GateCosts& costs = kCosts) {
  const GateTerms terms = gate_terms(spec, {}, client, costs);
  return terms.asks ? terms.ask : terms.tell;
}

TEST(gate_terms, training_asks_tells_or_pays_nothing_as_the_policy_declares) {
  EXPECT_TRUE(holds_training(with(TrainingGate::kAsks), {}));
  EXPECT_FALSE(holds_training(with(TrainingGate::kTells), {}));
  EXPECT_FALSE(holds_training({}, {}));
  EXPECT_EQ(paid(with(TrainingGate::kAsks), kGuarded), 3us);
  EXPECT_EQ(paid(with(TrainingGate::kTells), kGuarded), 200ns);
  EXPECT_EQ(paid(with(TrainingGate::kNone), kGuarded), 0ns);
  EXPECT_EQ(paid({}, kGuarded), 200ns);
}

/// Where a run's gate is in every process, whatever the policy, training's launches tell.
TEST(gate_terms, a_gate_that_is_always_there_is_told_of_training) {
  GateCosts always = kCosts;
  always.always = true;
  EXPECT_EQ(paid(with(TrainingGate::kNone), kGuarded, always), 200ns);
}

TEST(gate_terms, who_may_be_held_asks_at_the_start) {
  EXPECT_TRUE(gate_terms(with(TrainingGate::kAsks), {}, kGuarded, kCosts).asks);
  EXPECT_FALSE(gate_terms(with(TrainingGate::kTells), {}, kGuarded, kCosts).asks);
  EXPECT_FALSE(gate_terms(with(TrainingGate::kNone), {}, kGuarded, kCosts).asks);
  EXPECT_TRUE(gate_terms({}, {}, kGuarded, kCosts).asks) << "it may hold whom it will";
  for (const TrainingGate gate : {TrainingGate::kNone, TrainingGate::kTells}) {
    EXPECT_EQ(paid(with(gate), kBeside), 3us);
    EXPECT_EQ(gate_terms(with(gate), {}, kBeside, kCosts).sleep.wake, 9us);
  }
}

/// 1.1 us of a filler's launch, 0.5 of training's; of a policy that only looks through the driver's
/// own means nothing, nor of an oracle.
TEST(gate_terms, a_library_before_the_drivers_costs_what_was_measured) {
  PolicySpec spec;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
  spec.demands = {{SystemFeature::kLaunchInterception}};
  const GateCosts costs = gate_costs(spec, {}, nullptr);
  EXPECT_EQ(paid(spec, kGuarded, costs), 500ns);
  EXPECT_EQ(paid(spec, kBeside, costs), 1100ns);
  const ParameterSet own({{"ask", Duration{3us}}, {"tell", Duration{200ns}}});
  EXPECT_EQ(gate_costs(spec, own, nullptr).ask, 3us) << "its own cost";
  EXPECT_EQ(gate_costs(spec, own, &kCosts).sleep.spin, 50us) << "of the run";
  spec.oracle = true;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
}

}  // namespace
}  // namespace bubblesim::policy
