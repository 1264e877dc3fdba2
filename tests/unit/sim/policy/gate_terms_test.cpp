// What launches ask of a policy, and what that costs, by its parameters.
#include "sim/policy/gate_terms.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

ParameterSet gate(const std::string& barrier) {
  return ParameterSet({{"barrier", barrier}, {"ask", Duration{3us}}, {"tell", Duration{200ns}}});
}

GateTerms gate_terms(const ParameterSet& given, ClientId client) {
  return policy::gate_terms(given, client, gate_costs({}, given, nullptr));
}

TEST(gate_terms, training_asks_as_the_barrier_says) {
  EXPECT_TRUE(holds_training(gate("both")));
  EXPECT_FALSE(holds_training(gate("fillers")));
  EXPECT_FALSE(holds_training({}));
}

TEST(gate_terms, who_may_be_held_asks_at_the_start) {
  EXPECT_TRUE(gate_terms(gate("both"), ClientId{0}).asks);
  EXPECT_FALSE(gate_terms(gate("fillers"), ClientId{0}).asks);
  EXPECT_TRUE(gate_terms(gate("fillers"), ClientId{1}).asks);
  EXPECT_TRUE(gate_terms({}, ClientId{0}).asks);
}

TEST(gate_terms, training_tells_a_policy_that_has_a_cost_of_telling_and_no_barrier) {
  const ParameterSet told({{"ask", Duration{3us}}, {"tell", Duration{200ns}}});
  EXPECT_FALSE(gate_terms(told, ClientId{0}).asks);
  EXPECT_TRUE(gate_terms(told, ClientId{1}).asks);
}

TEST(gate_terms, asking_and_telling_take_what_is_said) {
  const GateTerms said = gate_terms(gate("both"), ClientId{0});
  EXPECT_EQ(said.ask, 3us);
  EXPECT_EQ(said.tell, 200ns);
  EXPECT_EQ(gate_terms({}, ClientId{1}).ask, 0ns);
}

/// 1.1 us of a filler's launch, 0.5 of training's; of a policy that only looks through the driver's
/// own means nothing, nor of an oracle.
TEST(gate_terms, a_library_before_the_drivers_costs_what_was_measured) {
  PolicySpec spec;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
  spec.demands = {{SystemFeature::kLaunchInterception}};
  const GateCosts costs = gate_costs(spec, {}, nullptr);
  EXPECT_EQ(policy::gate_terms({}, ClientId{0}, costs).ask, 500ns);
  EXPECT_EQ(policy::gate_terms({}, ClientId{1}, costs).ask, 1100ns);
  EXPECT_EQ(gate_costs(spec, gate("both"), nullptr).ask, 3us) << "its own cost";
  spec.oracle = true;
  EXPECT_EQ(gate_costs(spec, {}, nullptr).ask, 0ns);
}

TEST(gate_terms, a_run_with_a_gate_has_its_costs_whatever_the_parameters_say) {
  const GateCosts costs{.ask = 5us, .tell = 1us, .sleep = {.spin = 50us, .wake = 9us}};
  const auto terms = [&](const ParameterSet& given, std::uint32_t client) {
    return policy::gate_terms(given, ClientId{client}, costs);
  };
  EXPECT_EQ(terms(gate("both"), 0).ask, 5us);
  EXPECT_EQ(terms(gate("both"), 0).tell, 1us);
  EXPECT_EQ(terms({}, 0).ask, 1us) << "no barrier: training is only told of";
  EXPECT_EQ(terms({}, 1).ask, 5us);
  EXPECT_EQ(terms({}, 1).sleep.wake, 9us);
  EXPECT_EQ(gate_terms({}, ClientId{1}).sleep.wake, 0us);
}

}  // namespace
}  // namespace bubblesim::policy
