// What Dilu's launch hook sees.
#include <gtest/gtest.h>

#include <vector>

#include "policies/builtin.hpp"
#include "tests/conformance/policies/no_actions.hpp"

namespace bubblesim::policies {
namespace {

using policy::Verdict;

TEST(dilu, holds_training_for_its_debt_but_neither_holds_nor_counts_graphs) {
  const policy::PolicySpec spec = dilu_spec();
  const auto dilu = spec.make(policy::defaults(spec));
  const std::vector<policy::ClientInfo> clients(1);
  dilu->start({}, clients);
  testing::NoActions actions;
  const auto verdict = [&](std::uint64_t blocks, std::uint32_t operations) {
    policy::LaunchInfo launch;
    launch.blocks = blocks;
    launch.operations = operations;
    return dilu->on_launch(launch, policy::Instant{}, actions);
  };
  // A graph of a million kernels: cuGraphLaunch is no call that the hook knows.
  EXPECT_EQ(verdict(1'000'000'000'000, 1'000'000), Verdict::kAdmit);
  EXPECT_EQ(verdict(1'000'000'000'000, 1), Verdict::kAdmit);  // test before add
  EXPECT_EQ(verdict(1, 1), Verdict::kHold);
  EXPECT_EQ(verdict(1'000'000, 2), Verdict::kAdmit);
}

}  // namespace
}  // namespace bubblesim::policies
