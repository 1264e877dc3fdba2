#include "sim/advise/proposal.hpp"

#include <gtest/gtest.h>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"

namespace bubblesim::advise {
namespace {

using namespace std::chrono_literals;

TrialResult result(double kept, double gain) {
  TrialResult one;
  one.done = true;
  one.kept = kept;
  one.gain = gain;
  return one;
}

TEST(is_better, puts_limits_before_gain) {
  const Limits limits{0.98, {}};
  EXPECT_TRUE(is_better(result(0.98, 0.1), result(0.97, 0.9), limits));
  EXPECT_FALSE(is_better(result(0.97, 0.9), result(0.98, 0.1), limits));
  EXPECT_TRUE(is_better(result(0.99, 0.2), result(1, 0.1), limits));
}

TEST(violation, counts_every_latency_that_is_limited) {
  TrialResult one = result(1, 0.5);
  one.p95 = Duration{60ms};
  one.tokens = {Duration{900ms}, Duration{40ms}};
  EXPECT_DOUBLE_EQ(violation(one, {0.9, 50ms}), 0.2);
  EXPECT_DOUBLE_EQ(violation(one, {0.9, 60ms, {600ms, 50ms}}), 0.5);
  EXPECT_DOUBLE_EQ(violation(one, {0.9, {}, {600ms, 20ms}}), 1.5);
  EXPECT_DOUBLE_EQ(violation(one, {0.9, {}}), 0);
}

TEST(is_better, takes_what_keeps_more_of_training_among_equal_gains) {
  const Limits limits{0.9, {}};
  EXPECT_TRUE(is_better(result(0.99, 0.5), result(0.95, 0.5), limits));
  EXPECT_FALSE(is_better(result(0.95, 0.5), result(0.99, 0.5), limits));
}

TEST(is_better, is_a_strict_order) {
  const Limits limits{0.9, 50ms};
  std::vector<TrialResult> all;
  for (const double kept : {0.85, 0.9, 0.95}) {
    for (const double gain : {0.0, 0.1, 0.1004, 0.2}) {
      all.push_back(result(kept, gain));
      all.back().p95 = Duration{40ms};
      all.push_back(all.back());
      all.back().p95 = Duration{60ms};
    }
  }
  for (const TrialResult& a : all) {
    for (const TrialResult& b : all) {
      EXPECT_FALSE(is_better(a, b, limits) && is_better(b, a, limits));
      for (const TrialResult& c : all) {
        if (is_better(a, b, limits) && is_better(b, c, limits)) {
          EXPECT_TRUE(is_better(a, c, limits));
        }
      }
    }
  }
}

TEST(violation, is_the_share_of_the_limit_that_is_missed) {
  TrialResult one = result(0.882, 1);
  EXPECT_NEAR(violation(one, {0.98, {}}), 0.1, 1e-9);
  one.kept = 1;
  one.p95 = Duration{75ms};
  EXPECT_NEAR(violation(one, {0.98, 50ms}), 0.5, 1e-9);
  EXPECT_EQ(violation(one, {0.98, 80ms}), 0);
  one.overloaded = true;  // three quarters of the requests served
  one.requests_per_s = 75;
  one.offered_per_s = 100;
  EXPECT_NEAR(violation(one, {0.98, 80ms}), 1.25, 1e-9);
}

TEST(proposal, is_an_entry_of_a_run_config) {
  const policy::Registry registry = policies::builtin_policies();
  Proposal proposal{*registry.find("mps"), {}, {}};
  EXPECT_EQ(policy_entry(proposal), Json("mps"));
  proposal.parameters["filler_percentage"] = std::int64_t{30};
  proposal.places["/fillers/0/arrivals/rate_per_s"] = "12";
  EXPECT_EQ(policy_entry(proposal).dump(),
            R"({"name":"mps","parameters":{"filler_percentage":30}})");
  EXPECT_EQ(proposal_text(proposal),
            "mps filler_percentage=30 /fillers/0/arrivals/rate_per_s=12");
  EXPECT_EQ(parameters_of(proposal).integer("filler_percentage"), 30);
  EXPECT_EQ(parameters_of(proposal).integer("training_percentage"), 100);
}

}  // namespace
}  // namespace bubblesim::advise
