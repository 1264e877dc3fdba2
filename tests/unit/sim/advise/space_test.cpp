#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "policies/builtin.hpp"
#include "sim/advise/space.hpp"
#include "sim/base/json.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::advise {
namespace {

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
  system.can = {SystemFeature::kTimeSlicing, SystemFeature::kLaunchInterception};
  const Space space(registry, system, {});
  const auto starts = space.starts();
  EXPECT_EQ(names(starts, space, true),
            (std::set<std::string>{"exclusive", "reef", "time_slicing", "vcuda", "xsched"}));
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
                         {{{100, 0}, {7, 0}}, {4, 1}, std::move(bubbles)});
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
