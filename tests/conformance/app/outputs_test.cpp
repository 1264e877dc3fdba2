// What import, inspect, export, policies and devices print and write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/chrome_file.hpp"
#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Outcome succeed(const Workplace& place, const std::string& arguments) {
  Outcome outcome = place.bubblesim(arguments);
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty()) << arguments << ": standard error is for faults";
  return outcome;
}

TEST(Import, WritesAFileThatInspectsLikeItsSources) {
  const Workplace place;
  EXPECT_THAT(succeed(place, "import traces/samples/training -o job.btr").out,
              HasSubstr("job.btr: 4 ranks"));
  EXPECT_EQ(succeed(place, "inspect job.btr --json").out,
            succeed(place, "inspect traces/samples/training --json").out);
  EXPECT_EQ(succeed(place, "inspect job.btr").out,
            succeed(place, "inspect traces/samples/training").out);
}

TEST(Import, TwiceGivesTheSameBytes) {
  const Workplace place;
  succeed(place, "import traces/samples/training -o first.btr");
  succeed(place, "import traces/samples/training -o second.btr");
  EXPECT_FALSE(place.read("first.btr").empty());
  EXPECT_TRUE(place.read("first.btr") == place.read("second.btr"));
}

TEST(Import, FilesInAnyOrderGiveTheSameBytes) {
  const Workplace place;
  const std::string folder = "traces/samples/training/";
  succeed(place, "import " + folder + " -o up.btr");
  succeed(place, "import " + folder + "rank3.json.gz " + folder + "rank1.json.gz " + folder +
                     "rank0.json.gz " + folder + "rank2.json.gz -o mixed.btr");
  EXPECT_TRUE(place.read("up.btr") == place.read("mixed.btr"));
}

TEST(Inspect, JsonNamesItsFormatAndAllRanks) {
  const Workplace place;
  const Json json = parse_json(succeed(place, "inspect traces/samples/training --json").out);
  EXPECT_EQ(json.value("format", ""), "bubblesim.inspect/1");
  EXPECT_EQ(json["job"]["ranks"], 4);
}

TEST(Inspect, DrawsAPicture) {
  const Workplace place;
  EXPECT_EQ(place.bubblesim("inspect traces/samples/training --plot job.svg").code, 0);
  const std::string picture = place.read("job.svg");
  EXPECT_THAT(picture, HasSubstr("<svg "));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
}

TEST(Inspect, ReplayMeetsTheRecordingAndSlowerKernelsTakeLonger) {
  const Workplace place;
  const Json json = parse_json(
      succeed(place, "inspect traces/samples/training --what-if kernels=0.5 --json").out);
  EXPECT_LT(json["replay"]["mean_error"], 0.001);
  ASSERT_EQ(json["what_if"].size(), 1U);
  EXPECT_EQ(json["what_if"][0]["what_if"], "kernels=0.5");
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_GT(json["what_if"][0]["replay"]["ranks"][rank]["simulated_span_ns"],
              json["replay"]["ranks"][rank]["simulated_span_ns"]);
  }
}

TEST(Export, WritesAChromeTraceWhoseSlicesNest) {
  const Workplace place;
  EXPECT_THAT(succeed(place, "export traces/samples/training --chrome job.json").out,
              HasSubstr("job.json"));
  expect_slices_nest(parse_json(place.read("job.json")));
}

TEST(Lists, OfPoliciesAndDevicesAreJsonWithTheNamesOfTheText) {
  const Workplace place;
  const Json policies = parse_json(succeed(place, "policies --json").out);
  const std::string policy_text = succeed(place, "policies").out;
  ASSERT_GE(policies.size(), 6U);
  for (const Json& policy : policies) {
    const std::string mark = policy.value("oracle", false) ? " (oracle): " : ": ";
    EXPECT_THAT(policy_text, HasSubstr(policy.value("name", "?") + mark));
    for (const Json& parameter : policy["parameters"]) {
      EXPECT_THAT(parameter.value("source", ""), testing::Not(IsEmpty())) << parameter;
    }
  }
  const Json devices = parse_json(succeed(place, "devices --json").out);
  const std::string device_text = succeed(place, "devices").out;
  ASSERT_GE(devices.size(), 7U);
  for (const Json& device : devices) {
    EXPECT_THAT(device_text, HasSubstr(device.value("name", "?")));
    EXPECT_GT(device.value("sm_count", 0), 0);
  }
}

TEST(Lists, OfOnePolicyShowOnlyThat) {
  const Workplace place;
  const Json one = parse_json(succeed(place, "policies tgs --json").out);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].value("name", ""), "tgs");
}

}  // namespace
}  // namespace bubblesim::app_test
