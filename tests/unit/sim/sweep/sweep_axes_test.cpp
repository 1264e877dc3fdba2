// Values of axes: by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/sweep/sweep_axes.hpp"

namespace bubblesim::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ReadAxis {
  std::vector<std::string> values;
  std::string faults;
};

ReadAxis axis(const std::string& rest) {
  const auto document = JsonDocument::parse(R"({"pointer": "/a", )" + rest + "}", "sweep.json");
  Errors errors;
  ObjectReader root = document->root(errors);
  ReadAxis out;
  out.values = read_axis(root).values;
  root.finish();
  for (const Error& error : errors) out.faults += error.text() + "\n";
  return out;
}

std::vector<SweepAxis> sample(const std::string& text) {
  const auto document = JsonDocument::parse(R"({"sample": )" + text + "}", "sweep.json");
  Errors errors;
  ObjectReader root = document->root(errors);
  auto axes = read_sample(root.child("sample"));
  root.finish();
  EXPECT_TRUE(errors.empty()) << (errors.empty() ? "" : errors.front().text());
  return axes;
}

TEST(SweepAxis, AListIsItsValues) {
  EXPECT_THAT(axis(R"("values": [1, "x", {"name": "mps"}, null])").values,
              ElementsAre("1", "\"x\"", "{\"name\":\"mps\"}", "null"));
}

TEST(SweepAxis, ARangeHasBothEndsWhereTheStepMeetsThem) {
  EXPECT_THAT(axis(R"("range": {"from": 2, "to": 10, "step": 4})").values,
              ElementsAre("2", "6", "10"));
  EXPECT_THAT(axis(R"("range": {"from": 2, "to": 9, "step": 4})").values, ElementsAre("2", "6"));
}

TEST(SweepAxis, TenthsAreTenths) {
  EXPECT_THAT(axis(R"("range": {"from": 0.1, "to": 0.4, "step": 0.1})").values,
              ElementsAre("0.1", "0.2", "0.3", "0.4"));
}

TEST(SweepAxis, ARangeMayBeCounted) {
  EXPECT_THAT(axis(R"("range": {"from": 0, "to": 1, "count": 3})").values,
              ElementsAre("0.0", "0.5", "1.0"));
  EXPECT_THAT(axis(R"("range": {"from": 1, "to": 9, "count": 3})").values,
              ElementsAre("1", "5", "9"));
}

TEST(SweepAxis, SpansAndSizesKeepTheirUnits) {
  EXPECT_THAT(axis(R"("range": {"from": "1ms", "to": "2ms", "step": "500us"})").values,
              ElementsAre("\"1ms\"", "\"1.5ms\"", "\"2ms\""));
  EXPECT_THAT(axis(R"("log_range": {"from": "1ms", "to": "100ms", "count": 3})").values,
              ElementsAre("\"1ms\"", "\"10ms\"", "\"100ms\""));
  EXPECT_THAT(axis(R"("range": {"from": "1GiB", "to": "3GiB", "count": 2})").values,
              ElementsAre("\"1GiB\"", "\"3GiB\""));
}

TEST(SweepAxis, ALogRangeHasEqualRatios) {
  EXPECT_THAT(axis(R"("log_range": {"from": 1, "to": 1000, "count": 4})").values,
              ElementsAre("1", "10", "100", "1000"));
}

// 1, 1.78, 3.16, 5.62, 10 as whole numbers.
TEST(SweepAxis, WholeNumbersThatAreEqualCountOnce) {
  EXPECT_THAT(
      axis(R"("log_range": {"from": 1, "to": 10, "count": 5, "integers": true})").values,
      ElementsAre("1", "2", "3", "6", "10"));
  EXPECT_THAT(axis(R"("range": {"from": 1, "to": 2, "count": 5, "integers": true})").values,
              ElementsAre("1", "2"));
}

TEST(SweepAxis, FaultsSayWhatIsAllowed) {
  EXPECT_THAT(axis(R"("range": {"from": 1, "to": "2ms", "count": 2})").faults,
              HasSubstr("/range/to: found another unit"));
  EXPECT_THAT(axis(R"("range": {"from": 3, "to": 2, "count": 2})").faults,
              HasSubstr("/range/to: found less than \"from\""));
  EXPECT_THAT(axis(R"("range": {"from": 1, "to": 2, "step": 0})").faults,
              HasSubstr("/range/step: expected more than 0"));
  EXPECT_THAT(axis(R"("log_range": {"from": 0, "to": 2, "count": 2})").faults,
              HasSubstr("a logarithmic range has no zero"));
  EXPECT_THAT(axis(R"("range": {"from": 0, "to": 1, "step": 1e-9})").faults,
              HasSubstr("more than a million values"));
  EXPECT_THAT(axis(R"("values": [])").faults, HasSubstr("expected a list of 1 to a million"));
  EXPECT_THAT(axis(R"("range": {"from": "soon", "to": 2, "count": 2})").faults,
              HasSubstr("found \"soon\"; expected a number"));
  EXPECT_THAT(axis(R"("rang": {"from": 0})").faults, HasSubstr("rang"));
}

TEST(SweepSample, ALatinHypercubeHasOneValueInEachPartOfEachAxis) {
  const auto axes = sample(R"({"method": "latin_hypercube", "count": 20, "seed": 7, "axes": [
      {"pointer": "/a", "uniform": {"from": 0, "to": 20}},
      {"pointer": "/b", "log_uniform": {"from": "1us", "to": "1ms"}}]})");
  ASSERT_EQ(axes.size(), 2U);
  std::set<int> linear;
  std::set<int> logarithmic;
  for (const std::string& value : axes[0].values) {
    linear.insert(static_cast<int>(Json::parse(value).get<double>()));
  }
  for (const std::string& value : axes[1].values) {
    const auto span = parse_duration(Json::parse(value).get<std::string>());
    // A decade is a third of the axis.
    logarithmic.insert(
        static_cast<int>(std::log10(static_cast<double>(span->count()) / 1000) / 3 * 20));
  }
  EXPECT_EQ(linear.size(), 20U);
  EXPECT_EQ(logarithmic.size(), 20U);
  EXPECT_FALSE(std::is_sorted(axes[0].values.begin(), axes[0].values.end()));
}

TEST(SweepSample, TheSameSeedDrawsTheSameAndAnotherAxisDoesNotChangeIt) {
  const std::string uniform = R"({"pointer": "/a", "uniform": {"from": 0, "to": 1}})";
  const std::string two = R"({"pointer": "/b", "uniform": {"from": 0, "to": 1}})";
  const std::string start = R"({"method": "random", "count": 50, "seed": 3, "axes": [)";
  const auto alone = sample(start + uniform + "]}");
  const auto both = sample(start + two + ", " + uniform + "]}");
  EXPECT_EQ(alone[0].values, both[1].values);
  EXPECT_NE(both[0].values, both[1].values);
}

TEST(SweepSample, DrawsFromLists) {
  const auto axes = sample(R"({"method": "latin_hypercube", "count": 6, "axes": [
      {"pointer": "/a", "values": ["x", "y"]}]})");
  EXPECT_EQ(std::count(axes[0].values.begin(), axes[0].values.end(), "\"x\""), 3);
}

TEST(SweepSample, WholeNumbersWhereAskedFor) {
  const auto axes = sample(R"({"method": "random", "count": 30, "axes": [
      {"pointer": "/a", "uniform": {"from": 1, "to": 3, "integers": true}}]})");
  for (const std::string& value : axes[0].values) {
    EXPECT_TRUE(value == "1" || value == "2" || value == "3") << value;
  }
}

}  // namespace
}  // namespace bubblesim::sweep
