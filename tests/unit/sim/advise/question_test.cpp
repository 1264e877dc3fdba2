#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "policies/builtin.hpp"
#include "sim/advise/question.hpp"
#include "sim/advise/space.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/policy/parameter_check.hpp"
#include "tests/fault.hpp"

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
  const auto question = must(parsed(""));
  EXPECT_EQ(question.limits.keep, 0.98);
  EXPECT_EQ(question.limits.p95, std::nullopt);
  EXPECT_EQ(question.budget, Duration{std::chrono::seconds(60)});
  EXPECT_TRUE(question.system.has(policy::SystemFeature::kMig));
}

TEST(question, knows_what_the_system_has) {
  const auto question = must(parsed(R"("can": ["mps", "mig"], "policies": ["mps"])"));
  EXPECT_TRUE(question.system.has(policy::SystemFeature::kMps));
  EXPECT_FALSE(question.system.has(policy::SystemFeature::kDriverPatch));
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
  const auto question = error_of(read_question(path, policies::builtin_policies()));
  EXPECT_THAT(question.front().text(), HasSubstr("\"base\": \"example.json\""));
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
  const auto question = must(read_question(kExample, policies::builtin_policies()));
  EXPECT_THAT(question.base.text, HasSubstr("traces/samples/training"));
  EXPECT_EQ(question.axes.size(), 1U);
}

using namespace std::chrono_literals;

TrialResult result(double kept, double gain) {
  TrialResult one;
  one.done = true;
  one.kept = kept;
  one.gain = gain;
  return one;
}

TEST(is_better, puts_limits_before_gain_and_what_is_kept_of_training_after_it) {
  const Limits limits{0.98, {}};
  EXPECT_TRUE(is_better(result(0.98, 0.1), result(0.97, 0.9), limits));
  EXPECT_FALSE(is_better(result(0.97, 0.9), result(0.98, 0.1), limits));
  EXPECT_TRUE(is_better(result(0.99, 0.2), result(1, 0.1), limits));
  EXPECT_TRUE(is_better(result(0.99, 0.5), result(0.95, 0.5), {0.9, {}}));
  EXPECT_FALSE(is_better(result(0.95, 0.5), result(0.99, 0.5), {0.9, {}}));
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
  EXPECT_EQ(proposal_text(proposal), "mps filler_percentage=30 /fillers/0/arrivals/rate_per_s=12");
  EXPECT_EQ(parameters_of(proposal).integer("filler_percentage"), 30);
  EXPECT_EQ(parameters_of(proposal).integer("training_percentage"), 100);
}

using policy::SystemFeature;

std::set<std::string> names(const std::vector<Proposal>& proposals, const Space& space,
                            bool available) {
  std::set<std::string> out;
  for (const Proposal& one : proposals) {
    if (space.is_available(one) == available) out.insert(one.policy->name);
  }
  return out;
}

class SpaceTest : public ::testing::Test {
 protected:
  const policy::Registry registry = policies::builtin_policies();
};

TEST_F(SpaceTest, recommends_what_the_system_can_have) {
  SystemChoice system;
  system.can = {SystemFeature::kTimeSlicing, SystemFeature::kLaunchInterception,
                SystemFeature::kRewrittenKernels};
  const Space space(registry, system, {});
  const auto starts = space.starts();
  EXPECT_EQ(names(starts, space, true), (std::set<std::string>{"exclusive", "reef", "tally",
                                                               "time_slicing", "vcuda",
                                                               "xsched"}));
  for (const Proposal& one : starts) {  // reef without its driver, xsched at level 1
    if (!space.is_available(one)) continue;
    EXPECT_TRUE(space.lacking(one).empty()) << proposal_text(one);
  }
  EXPECT_TRUE(names(starts, space, false).contains("ideal"));
  EXPECT_TRUE(names(starts, space, false).contains("mps"));
}

TEST_F(SpaceTest, tries_the_policies_that_were_named) {
  SystemChoice system;
  system.policies = {"mps", "tgs"};
  const Space space(registry, system, {});
  EXPECT_EQ(names(space.starts(), space, true), (std::set<std::string>{"exclusive", "mps", "tgs"}));
}

TEST_F(SpaceTest, steps_stay_in_declared_ranges_and_leave_out_what_is_not_searched) {
  const Space space(registry, {}, {});
  for (const policy::PolicySpec& spec : registry.all()) {
    for (const double factor : {4.0, 1.02}) {
      for (const SpaceStep& step : space.steps({&spec, {}, {}}, factor, {})) {
        EXPECT_EQ(std::ranges::count(spec.not_searched, step.dimension), 0) << step.dimension;
        const auto parameter =
            std::ranges::find(spec.parameters, step.dimension, &policy::ParameterSpec::name);
        ASSERT_NE(parameter, spec.parameters.end());
        const std::string value = policy::value_text(step.proposal.parameters.at(step.dimension));
        EXPECT_TRUE(policy::parse_value(*parameter, value)) << proposal_text(step.proposal);
      }
    }
  }
}

TEST_F(SpaceTest, loads_are_scaled_within_their_range) {
  const std::string place = "/fillers/0/arrivals/rate_per_s";
  const Space space(registry, {}, {{place, {"10", "100"}, std::pair(1.0, 150.0)}});
  const Proposal start{*registry.find("mps"), {}, {{place, "100"}}};
  EXPECT_EQ(space.with_load(start, 1.2).places.at(place), "120");
  EXPECT_EQ(space.with_load(start, 2).places.at(place), "150");
  EXPECT_EQ(space.with_load(start, 1e-9).places.at(place), "1");
  std::vector<std::string> values;
  for (const SpaceStep& step : space.steps(start, 2, {place})) {
    values.push_back(step.proposal.places.at(place));
  }
  EXPECT_EQ(values, (std::vector<std::string>{"150", "50"}));
}

TEST_F(SpaceTest, some_places_begin_with_the_base_and_come_back_to_it) {
  const std::string place = "/fillers/0/gpus";
  const Space space(registry, {}, {{place, {"[0,1]", "[0]"}, std::nullopt, true}});
  for (const Proposal& start : space.starts()) EXPECT_TRUE(start.places.empty());
  const auto to = [&](Proposal from) {
    std::vector<std::string> values;
    for (const SpaceStep& step : space.steps(from, 2, {place})) {
      const auto at = step.proposal.places.find(place);
      values.push_back(at == step.proposal.places.end() ? "base" : at->second);
    }
    return values;
  };
  const policy::PolicySpec* mps = *registry.find("mps");
  EXPECT_EQ(to({mps, {}, {}}), (std::vector<std::string>{"[0,1]"}));
  EXPECT_EQ(to({mps, {}, {{place, "[0,1]"}}}), (std::vector<std::string>{"[0]", "base"}));
  EXPECT_EQ(to({mps, {}, {{place, "[0]"}}}), (std::vector<std::string>{"[0,1]"}));
}

TEST_F(SpaceTest, other_places_go_to_the_next_value) {
  const Space space(registry, {}, {{"/fillers/0/max_batch", {"4", "8", "16"}}});
  const Proposal start{*registry.find("mps"), {}, {{"/fillers/0/max_batch", "4"}}};
  const auto steps = space.steps(start, 2, {"/fillers/0/max_batch"});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].proposal.places.at("/fillers/0/max_batch"), "8");
}

const char* const kBase = R"({"fillers": [
  {"name": "chat", "mode": "online", "arrivals": {"process": "poisson", "rate_per_s": 1},
   "program": {"model": "bert-base", "batch": 8}},
  {"name": "fill", "mode": "offline", "program": {"trace": "t"}, "gpus": [1]}]})";

std::vector<PlaceRange> places_of(const Question& question, std::vector<double> bubbles) {
  return searched_places(question, Json::parse(kBase),
                         {.fillers = {{100, 0}, {7, 0}},
                          .filler_gpus = {4, 1},
                          .gpu_bubbles = std::move(bubbles)});
}

const PlaceRange* place_at(const std::vector<PlaceRange>& places, const std::string& pointer) {
  const auto found = std::ranges::find(places, pointer, &PlaceRange::pointer);
  return found == places.end() ? nullptr : &*found;
}

// The service's 4 GPUs serve 400 requests a second.
TEST(searched_places, are_loads_and_batch_sizes) {
  const auto places = places_of({}, {0.3, 0.3, 0.3, 0.3});
  ASSERT_EQ(places.size(), 2U);
  const PlaceRange* load = place_at(places, "/fillers/0/arrivals/rate_per_s");
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->values, (std::vector<std::string>{"20", "60", "160", "320"}));
  EXPECT_EQ(load->range, std::pair(0.8, 480.0));
  EXPECT_EQ(place_at(places, "/fillers/0/program/batch")->values,
            (std::vector<std::string>{"2", "8", "32"}));
}

TEST(searched_places, has_the_idlest_gpus_where_they_differ) {
  const auto places = places_of({}, {0.1, 0.5, 0.2, 0.4});
  const PlaceRange* gpus = place_at(places, "/fillers/0/gpus");
  ASSERT_NE(gpus, nullptr);
  EXPECT_EQ(gpus->values, (std::vector<std::string>{"[1,3]", "[1]"}));
  EXPECT_TRUE(gpus->begins_at_base);
  EXPECT_EQ(place_at(places, "/fillers/1/gpus"), nullptr);  // the question says where it runs
}

TEST(searched_places, are_those_of_an_axis_where_there_is_one) {
  Question question;
  question.axes = {{"/fillers/chat/program/batch", {"1", "2"}}};
  const auto places = places_of(question, {});
  EXPECT_EQ(place_at(places, "/fillers/0/program/batch"), nullptr);
  EXPECT_EQ(place_at(places, "/fillers/chat/program/batch")->values,
            (std::vector<std::string>{"1", "2"}));
  question.axes = {{"/fillers/chat/program", {"{}"}}};  // says the batch size, too
  EXPECT_EQ(place_at(places_of(question, {}), "/fillers/0/program/batch"), nullptr);
  question.load = Load::kAsGiven;
  EXPECT_EQ(places_of(question, {}).size(), 1U);
  question.load_share = 0.5;
  EXPECT_EQ(place_at(places_of(question, {}), "/fillers/0/arrivals/rate_per_s")->values,
            (std::vector<std::string>{"200"}));
}

}  // namespace
}  // namespace bubblesim::advise
