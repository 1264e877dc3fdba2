#include "sim/advise/space.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/json.hpp"

namespace bubblesim::advise {
namespace {

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
