// The file of a sweep: every fault at once, and what --set does to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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
  const auto sweep = read_sweep_config(
      write_sweep(folder, "[]", R"(, "set": {"/duration": "1s", "/seed": 4})"),
      {"duration=2s", "/training/jitter_cv=0.5", "/policies/mps/parameters/priority=training"});
  ASSERT_TRUE(sweep) << texts(sweep.error());
  EXPECT_THAT(sweep->base, AllOf(HasSubstr(R"("duration":"2s")"), HasSubstr(R"("seed":4)"),
                                 HasSubstr(R"("jitter_cv":0.5)"),
                                 HasSubstr(R"("name":"mps","parameters":)"),
                                 HasSubstr(R"({"priority":"training"})")));
}

TEST(SweepConfig, SetFixesAnAxis) {
  const Folder folder;
  const auto sweep = read_sweep_config(
      write_sweep(folder, R"([{"pointer": "/seed", "values": [1, 2]},
          {"zip": [{"pointer": "/duration", "values": ["1s", "2s"]},
                   {"pointer": "/name", "values": ["a", "b"]}]}])"),
      {"/seed=9", "/duration=3s"});
  ASSERT_TRUE(sweep) << texts(sweep.error());
  ASSERT_EQ(sweep->groups.size(), 1U);
  ASSERT_EQ(sweep->groups[0].axes.size(), 1U);
  EXPECT_EQ(sweep->groups[0].axes[0].pointer, "/name");
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
      read_sweep_config(write_sweep(folder, "[" + named + ", " + numbered + "]"), {});
  ASSERT_FALSE(twice);
  EXPECT_THAT(texts(twice.error()), HasSubstr("which is the same place"));
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
  const auto sweep = read_sweep_config(
      write_sweep(folder, R"([{"sample": {"method": "random", "count": 3, "axes": [
          {"pointer": "/seed", "uniform": {"from": 1, "to": 1000000, "integers": true}},
          {"pointer": "/training/jitter_cv", "uniform": {"from": 0, "to": 1}}]}}])"),
      {});
  ASSERT_TRUE(sweep) << texts(sweep.error());
  ASSERT_EQ(sweep->groups.size(), 1U);
  EXPECT_EQ(sweep->groups[0].axes.size(), 2U);
}

}  // namespace
}  // namespace bubblesim::sweep
