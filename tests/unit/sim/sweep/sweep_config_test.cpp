// The file of a sweep: every fault at once, and what --set does to it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/sweep/sweep_axes.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::AllOf, testing::HasSubstr;

std::string fault_of(const std::string& text, const std::vector<std::string>& set = {}) {
  const Folder folder;
  const auto sweep = read_sweep_config(folder.write("sweep.json", text), set);
  return sweep ? "" : texts(sweep.error());
}

TEST(SweepConfig, NamesAllFaultsAtOnce) {
  EXPECT_THAT(fault_of(R"({"nmae": "s", "base": 5, "axes": [
      {"pointer": "a", "values": [1]},
      {"zip": [{"pointer": "/b", "values": [1, 2]}, {"pointer": "/c", "values": [1]}]},
      {"pointer": "/d"}, {"pointer": "/b", "values": [3]}], "repetitions": 0})"),
              AllOf(HasSubstr("nmae"), HasSubstr("/base: found"),
                    HasSubstr("/axes/0/pointer: found \"a\"; expected a JSON pointer"),
                    HasSubstr("found 1 values of \"/c\" and 2 of \"/b\""), HasSubstr("/axes/2"),
                    HasSubstr("found the axis of \"/b\" after the axis of \"/b\", which is the "
                              "same place; expected one of them, or each with a \"when\""),
                    HasSubstr("/repetitions")));
}

TEST(SweepConfig, ABaseThatIsNotThereIsNamed) {
  EXPECT_THAT(fault_of(R"({"name": "s", "base": "runs/none.json"})"),
              HasSubstr("runs/none.json"));
}

TEST(SweepConfig, SetChangesTheBaseAndTheCommandLineChangesItLast) {
  const Folder folder;
  const auto sweep = must(read_sweep_config(
      write_sweep(folder, "[]", R"(, "set": {"/duration": "1s", "/seed": 4})"),
      {"duration=2s", "/training/jitter_cv=0.5", "/policies/mps/parameters/priority=training"}));
  EXPECT_THAT(sweep.base.text, AllOf(HasSubstr(R"("duration":"2s")"), HasSubstr(R"("seed":4)"),
                                 HasSubstr(R"("jitter_cv":0.5)"),
                                 HasSubstr(R"("name":"mps","parameters":)"),
                                 HasSubstr(R"({"priority":"training"})")));
}

TEST(SweepConfig, SetFixesAnAxis) {
  const Folder folder;
  const auto sweep = must(read_sweep_config(
      write_sweep(folder, R"([{"pointer": "/seed", "values": [1, 2]},
          {"zip": [{"pointer": "/duration", "values": ["1s", "2s"]},
                   {"pointer": "/name", "values": ["a", "b"]}]}])"),
      {"/seed=9", "/duration=3s"}));
  ASSERT_EQ(sweep.groups.size(), 1U);
  ASSERT_EQ(sweep.groups[0].axes.size(), 1U);
  EXPECT_EQ(sweep.groups[0].axes[0].pointer, "/name");
}

// The base's second policy is mps: number and name are one place.
TEST(SweepConfig, APlaceIsTheSameByNumberAndByName) {
  const Folder folder;
  const std::string place = "/policies/1/parameters/priority";
  const std::string named =
      R"({"pointer": "/policies/mps/parameters/priority", "values": ["training"]})";
  const auto sweep = read_sweep_config(write_sweep(folder, "[" + named + "]"), {place + "=none"});
  ASSERT_TRUE(sweep) << texts(sweep.error());
  EXPECT_TRUE(sweep->groups.empty());
  const std::string numbered = R"({"pointer": ")" + place + R"(", "values": ["none"]})";
  const auto twice =
      error_of(read_sweep_config(write_sweep(folder, "[" + named + ", " + numbered + "]"), {}));
  EXPECT_THAT(texts(twice), HasSubstr("which is the same place"));
}

// A whole filler would take the place of what was set in it.
TEST(SweepConfig, AnAxisDoesNotOverwriteAnEarlierOneInsideItsPlace) {
  const Folder folder;
  const auto fault = [&folder](const std::string& axes) {
    const auto sweep = read_sweep_config(write_sweep(folder, "[" + axes + "]"), {});
    return sweep ? "" : texts(sweep.error());
  };
  const std::string whole = R"({"pointer": "/fillers/0", "values": [{}])";
  const std::string named = R"({"pointer": "/fillers/batch/memory", "values": ["2GB"])";
  const std::string when = R"(, "when": {"/seed": 1}})";
  EXPECT_THAT(fault(named + "}, " + whole + "}"),
              HasSubstr("/axes: found the axis of \"/fillers/0\" after the axis of "
                        "\"/fillers/batch/memory\", which it overwrites; expected one of them, "
                        "or the larger place first"));
  EXPECT_THAT(fault(R"({"zip": [)" + named + "}, " + whole + "}]}"), HasSubstr("overwrites"));
  EXPECT_THAT(fault(named + "}, " + whole + when), HasSubstr("overwrites"));
  EXPECT_EQ(fault(named + when + ", " + whole + when), "");
  EXPECT_EQ(fault(whole + "}, " + named + "}"), "") << "changes a part of what was set before";
  EXPECT_EQ(fault(R"({"pointer": "/fillers/0/memory", "values": ["1GB"]}, )"
                  R"({"pointer": "/fillers/0/mem", "values": [1]})"),
            "")
      << "begins alike and is another place";
}

TEST(SweepConfig, NothingThatIsSetIsOverwritten) {
  const auto fault = [](const std::string& axes, const std::vector<std::string>& set,
                        const std::string& more = "") {
    const Folder folder;
    const auto sweep = read_sweep_config(write_sweep(folder, axes, more), set);
    return sweep ? "" : texts(sweep.error());
  };
  EXPECT_THAT(fault("[]", {"/seed=3", "seed=4"}),
              HasSubstr("--set: found --set of \"/seed\" after --set of \"/seed\", which is the "
                        "same place; expected one of them"));
  EXPECT_THAT(fault("[]", {"/fillers/batch/memory=2GB", "/fillers/0={}"}),
              HasSubstr("--set: found --set of \"/fillers/0\" after --set of "
                        "\"/fillers/batch/memory\", which it overwrites"));
  EXPECT_EQ(fault("[]", {"/training/jitter_cv=0.5", "/training/jitter=1"}), "");
  EXPECT_THAT(fault(R"([{"pointer": "/policies/1", "values": ["tgs"]}])",
                    {"/policies/mps/parameters/priority=none"}),
              HasSubstr("/axes: found the axis of \"/policies/1\" after --set of "
                        "\"/policies/mps/parameters/priority\", which it overwrites"));
  EXPECT_THAT(fault("[]", {},
                    R"(, "set": {"/fillers/0/memory": "2GB", "/fillers/batch/memory": "1GB"})"),
              HasSubstr("/set: found \"/fillers/batch/memory\" after \"/fillers/0/memory\""));
}

TEST(SweepConfig, SetThatFitsNowhereIsAFault) {
  const Folder folder;
  const std::string path = write_sweep(folder, "[]");
  const auto fault = [&path](const std::string& set) {
    const auto sweep = read_sweep_config(path, {set});
    return sweep ? "" : texts(sweep.error());
  };
  EXPECT_THAT(fault("/fillers/3/memory=1GB"),
              HasSubstr("--set: /fillers/3/memory: found element 3 of a list of 1"));
  EXPECT_THAT(fault("/fillers/bach/memory=1GB"), HasSubstr("did you mean \"batch\"?"));
  EXPECT_THAT(fault("/duration/x=1"), HasSubstr("which has no \"x\""));
  EXPECT_THAT(fault("duration"), HasSubstr("expected a place of the run config and its value"));
}

TEST(SweepConfig, TheSamplesAreOneGroup) {
  const Folder folder;
  const auto sweep = must(read_sweep_config(
      write_sweep(folder, R"([{"sample": {"method": "random", "count": 3, "axes": [
          {"pointer": "/seed", "uniform": {"from": 1, "to": 1000000, "integers": true}},
          {"pointer": "/training/jitter_cv", "uniform": {"from": 0, "to": 1}}]}}])"),
      {}));
  ASSERT_EQ(sweep.groups.size(), 1U);
  EXPECT_EQ(sweep.groups[0].axes.size(), 2U);
}

// Values of axes: by hand.

using testing::ElementsAre;

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
