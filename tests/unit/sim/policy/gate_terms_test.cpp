// What launches ask of a policy, and what that costs, by its parameters.
#include "sim/policy/gate_terms.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

ParameterSet gate(const std::string& barrier) {
  return ParameterSet({{"barrier", barrier}, {"ask", Duration{3us}}, {"tell", Duration{200ns}}});
}

std::vector<ClientInfo> clients(Role filler) {
  std::vector<ClientInfo> all(2);
  all[0].id = ClientId{0};
  all[1].id = ClientId{1};
  all[1].role = filler;
  return all;
}

TEST(gate_terms, training_asks_as_the_barrier_says) {
  EXPECT_TRUE(holds_training(gate("both"), clients(Role::kOffline)));
  EXPECT_TRUE(holds_training(gate("requests"), clients(Role::kOnline)));
  EXPECT_FALSE(holds_training(gate("requests"), clients(Role::kOffline)));
  EXPECT_FALSE(holds_training(gate("fillers"), clients(Role::kOnline)));
  EXPECT_FALSE(holds_training({}, clients(Role::kOnline)));
}

TEST(gate_terms, who_asks_waits_longer_than_who_tells) {
  EXPECT_EQ(launch_delay(gate("requests"), clients(Role::kOnline), ClientId{0}), 3us);
  EXPECT_EQ(launch_delay(gate("requests"), clients(Role::kOffline), ClientId{0}), 200ns);
  EXPECT_EQ(launch_delay(gate("fillers"), clients(Role::kOffline), ClientId{1}), 3us);
  EXPECT_EQ(launch_delay({}, clients(Role::kOffline), ClientId{1}), 0ns);
}

}  // namespace
}  // namespace bubblesim::policy
