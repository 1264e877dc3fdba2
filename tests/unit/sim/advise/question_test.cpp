#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/builtin.hpp"
#include "sim/advise/question.hpp"
#include "sim/advise/space.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::advise {
namespace {

using ::testing::HasSubstr;

const std::string kExample = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/advise/example.json";

CheckedResult<Question> parsed(const std::string& keys) {
  const auto document = JsonDocument::parse(
      R"({"name": "q", "base": {})" + (keys.empty() ? "" : ", " + keys) + "}", "q.json");
  if (!document) return tl::unexpected<Errors>(document.error());
  return parse_question(*document, policies::builtin_policies());
}

std::string fault_of(const std::string& keys) {
  const auto question = parsed(keys);
  if (question) return "none";
  std::string text;
  for (const Error& fault : question.error()) text += fault.text() + "\n";
  return text;
}

TEST(question, has_defaults) {
  const auto question = parsed("");
  ASSERT_TRUE(question);
  EXPECT_EQ(question->limits.keep, 0.98);
  EXPECT_EQ(question->limits.p95, std::nullopt);
  EXPECT_EQ(question->budget, Duration{std::chrono::seconds(60)});
  EXPECT_TRUE(question->system.has(policy::SystemFeature::kMig));
}

TEST(question, knows_what_the_system_has) {
  const auto question = parsed(R"("can": ["mps", "mig"], "policies": ["mps"])");
  ASSERT_TRUE(question);
  EXPECT_TRUE(question->system.has(policy::SystemFeature::kMps));
  EXPECT_FALSE(question->system.has(policy::SystemFeature::kDriverPatch));
}

TEST(question, faults_say_what_would_do) {
  EXPECT_THAT(fault_of(R"("keep": 1.5)"), HasSubstr("/keep"));
  EXPECT_THAT(fault_of(R"("keep": 0)"), HasSubstr("/keep"));
  EXPECT_THAT(fault_of(R"("p95": "0ms")"), HasSubstr("/p95"));
  EXPECT_THAT(fault_of(R"("can": ["msp"])"), HasSubstr("did you mean \"mps\"?"));
  EXPECT_THAT(fault_of(R"("can": ["mps"], "cannot": ["mps"])"), HasSubstr("in one of them"));
  EXPECT_THAT(fault_of(R"("policies": ["tsg"])"), HasSubstr("did you mean \"tgs\"?"));
  EXPECT_THAT(fault_of(R"("policies": ["ideal"])"), HasSubstr("an oracle"));
  EXPECT_THAT(fault_of(R"("policies": ["mps", "tgs", "mps"])"), HasSubstr("\"mps\" again"));
  EXPECT_THAT(fault_of(R"("policies": ["gpreempt"], "can": ["mps"])"),
              HasSubstr("\"gpreempt\", which demands time_slicing, driver_patch"));
  EXPECT_THAT(fault_of(R"("load": "fixed")"), HasSubstr("as_given"));
  EXPECT_THAT(fault_of(R"("budget": "1ms")"), HasSubstr("/budget"));
  EXPECT_THAT(fault_of(R"("slo": {"tftt": "1s"})"), HasSubstr("did you mean \"ttft\"?"));
  EXPECT_THAT(fault_of(R"("slo": {"ttft": "0s"})"), HasSubstr("/slo/ttft"));
  EXPECT_THAT(fault_of(R"("kep": 1)"), HasSubstr("did you mean \"keep\"?"));
  EXPECT_THAT(fault_of(R"("axes": [{"pointer": "/seed", "values": [1]}])"),
              HasSubstr("chosen without one"));
}

TEST(question, limits_on_tokens_are_read_from_an_option) {
  Errors faults;
  const TokenLatency both = read_slo("ttft=500ms,tpot=50ms", faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_EQ(both.ttft, Duration{std::chrono::milliseconds(500)});
  EXPECT_EQ(both.tpot, Duration{std::chrono::milliseconds(50)});
  EXPECT_EQ(read_slo("tpot=1s", faults).ttft, std::nullopt);
  for (const char* wrong : {"tptt=1s", "ttft", "ttft=fast", "ttft=0s", "ttft=1s,",
                            "ttft=1s,,tpot=1s", ",ttft=1s"}) {
    faults.clear();
    (void)read_slo(wrong, faults);
    EXPECT_EQ(faults.size(), 1U) << wrong;
  }
  faults.clear();
  (void)read_slo("ttft=1s,", faults);
  EXPECT_THAT(faults.at(0).text(), HasSubstr("found \"ttft=1s,\", expected a limit after"));
}

TEST(question, latencies_are_scaled_together) {
  using namespace std::chrono_literals;
  const Limits limits = with_latencies_scaled({0.9, 50ms, {500ms, {}}}, 2);
  EXPECT_EQ(limits.keep, 0.9);
  EXPECT_EQ(limits.p95, Duration{100ms});
  EXPECT_EQ(limits.slo.ttft, Duration{1s});
  EXPECT_EQ(limits.slo.tpot, std::nullopt);
}

TEST(question, a_run_config_is_told_apart) {
  const std::string path = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/runs/example.json";
  const auto question = read_question(path, policies::builtin_policies());
  ASSERT_FALSE(question);
  EXPECT_THAT(question.error().front().text(), HasSubstr("\"base\": \"example.json\""));
}

TEST(question, a_load_above_all_that_is_served_is_refused) {
  Question question;
  question.load_share = 5;
  const Errors faults = check_question(question, policies::builtin_policies());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults.front().text(), HasSubstr("found 5"));
  EXPECT_THAT(faults.front().text(), HasSubstr("expected at most 1"));
}

TEST(question, example_is_read_with_its_base) {
  const auto question = read_question(kExample, policies::builtin_policies());
  ASSERT_TRUE(question) << question.error().front().text();
  EXPECT_THAT(question->base, HasSubstr("traces/samples/training"));
  EXPECT_EQ(question->axes.size(), 1U);
}

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
