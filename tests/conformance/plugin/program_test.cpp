// bubblesim --policy-library: lists and runs policies of libraries; faults end it with exit code 2.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using PolicyLibrary = AtShortWorkplace;

std::string option(const std::string& name) {
  return " --policy-library " BUBBLESIM_LIBRARIES "/lib" + name + ".so ";
}

constexpr const char* kExample = "run configs/runs/example.json ";

TEST_F(PolicyLibrary, IsListedWithItsFileAndParameters) {
  const Outcome text = place.bubblesim("policies capped" + option("two_policies"));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("capped: Fillers have fewer SMs"),
                              HasSubstr("file: " BUBBLESIM_LIBRARIES "/libtwo_policies.so"),
                              HasSubstr("percentage")));
  const Json all = parse_json(place.bubblesim("policies --json" + option("two_policies")).out);
  ASSERT_TRUE(all.is_array());
  EXPECT_TRUE(all.front()["file"].is_null()) << "a policy of the tree has no file";
  EXPECT_EQ(all.back()["name"], "broken");
  EXPECT_EQ(all.back()["file"], BUBBLESIM_LIBRARIES "/libtwo_policies.so");
}

// capped with 30 % is mps with 30 % for fillers.
TEST_F(PolicyLibrary, RunsAsThePolicyOfTheTreeThatDoesTheSame) {
  const std::string config = place.read("configs/runs/example.json");
  const auto with = [&](const std::string& policies) {
    Json json = parse_json(config);
    json["training"]["trace"] = "traces/samples/training";
    json["fillers"][0]["program"]["trace"] = "traces/samples/inference.json.gz";
    json["duration"] = "1s";
    json["policies"] = parse_json(policies);
    return json.dump();
  };
  place.write("own.json", with(R"(["capped"])"));
  place.write("tree.json", with(R"([{"name": "mps", "parameters": {"filler_percentage": 30}}])"));
  const Outcome own = place.bubblesim("run own.json --json" + option("two_policies"));
  const Outcome tree = place.bubblesim("run tree.json --json");
  ASSERT_EQ(own.code, 0) << own.err;
  Json a = parse_json(own.out)["policies"][0];
  Json b = parse_json(tree.out)["policies"][0];
  for (Json* json : {&a, &b}) {
    for (const char* key : {"policy", "name", "parameters"}) json->erase(key);
  }
  EXPECT_EQ(a, b);
}

TEST_F(PolicyLibrary, AnExceptionOfThePolicyIsAFaultWithItsName) {
  const Outcome made =
      place.bubblesim(std::string(kExample) + "--policy broken" + option("two_policies"));
  EXPECT_EQ(made.code, 2);
  EXPECT_THAT(made.err, HasSubstr("policy broken: threw an exception: cannot be made today"));
}

TEST_F(PolicyLibrary, AnExceptionDuringAMeasurementIsTheSameFault) {
  const std::string broken = "--policy broken:throws=launch" + option("two_policies");
  const Outcome outcome = place.bubblesim("measure configs/runs/example.json --fake " + broken);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("policy broken: threw an exception: did not expect a launch"));
}

TEST_F(PolicyLibrary, AllBadLibrariesAreNamedAtOnce) {
  const Outcome outcome = place.bubblesim("policies" + option("other_version") + option("throws") +
                                          "--policy-library nowhere");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("libother_version.so: was built for version"),
                                 HasSubstr("libthrows.so: threw while it declared"),
                                 HasSubstr("nowhere: there is no such file")));
}

}  // namespace
}  // namespace bubblesim::app_test
