// What import, inspect, export, policies and devices print and write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/chrome_file.hpp"
#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Import : public AtWorkplace {};

TEST_F(Import, WritesAFileThatInspectsLikeItsSources) {
  EXPECT_THAT(succeed(place, "import traces/samples/training -o job.btr").out,
              HasSubstr("job.btr: 4 ranks"));
  EXPECT_EQ(succeed(place, "inspect job.btr --json").out,
            succeed(place, "inspect traces/samples/training --json").out);
  EXPECT_EQ(succeed(place, "inspect job.btr").out,
            succeed(place, "inspect traces/samples/training").out);
}

TEST_F(Import, TwiceGivesTheSameBytes) {
  succeed(place, "import traces/samples/training -o first.btr");
  succeed(place, "import traces/samples/training -o second.btr");
  EXPECT_FALSE(place.read("first.btr").empty());
  EXPECT_TRUE(place.read("first.btr") == place.read("second.btr"));
}

TEST_F(Import, FilesInAnyOrderGiveTheSameBytes) {
  const std::string folder = "traces/samples/training/";
  succeed(place, "import " + folder + " -o up.btr");
  succeed(place, "import " + folder + "rank3.json.gz " + folder + "rank1.json.gz " + folder +
                     "rank0.json.gz " + folder + "rank2.json.gz -o mixed.btr");
  EXPECT_TRUE(place.read("up.btr") == place.read("mixed.btr"));
}

TEST_F(Import, JsonSaysWhatTheTextSays) {
  const Json json =
      parse_json(succeed(place, "import traces/samples/training -o job.btr --json").out);
  EXPECT_EQ(json.value("format", ""), "bubblesim.import/1");
  EXPECT_EQ(json["ranks"].size(), 4U);
  EXPECT_EQ(json["kernel_ns_without_launch_shape"], 0);
  EXPECT_GT(json["kernel_ns"], 0);
  EXPECT_EQ(json["bytes"], place.read("job.btr").size());
}

// The first rank's file, cut after a number of bytes.
void write_cut(const Workplace& place, std::size_t bytes) {
  place.write("cut.btr", place.read("job.btr").substr(0, bytes));
}

class Inspect : public AtWorkplace {};

TEST_F(Inspect, ACutFileSaysFirstWhatIsLost) {
  succeed(place, "import traces/samples/training/rank0.json.gz -o job.btr");
  const std::size_t whole = place.read("job.btr").size();
  for (std::size_t part = 1; part < 8; ++part) {
    write_cut(place, part * whole / 8);
    const Outcome text = place.bubblesim("inspect cut.btr");
    const Outcome json = place.bubblesim("inspect cut.btr --json");
    EXPECT_EQ(text.code, json.code);
    if (text.code != 0) continue;  // not even one rank is left: a fault
    EXPECT_THAT(text.out, HasSubstr("btr_end_missing")) << part;
    EXPECT_EQ(text.out.find("Lost: "), text.out.find('\n') + 1) << part;
    EXPECT_EQ(parse_json(json.out)["job"]["counters"]["btr_end_missing"]["count"], 1) << part;
    EXPECT_THAT(text.out, Not(HasSubstr(" 0 ns "))) << part;
  }
}

TEST_F(Inspect, AFlippedByteIsCountedInTextAndJson) {
  succeed(place, "import traces/samples/training/rank0.json.gz -o job.btr");
  std::string bytes = place.read("job.btr");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  place.write("cut.btr", bytes);
  EXPECT_THAT(place.bubblesim("inspect cut.btr").out, HasSubstr("btr_chunks_lost"));
  const Json json = parse_json(place.bubblesim("inspect cut.btr --json").out);
  EXPECT_EQ(json["job"]["counters"]["btr_chunks_lost"]["count"], 1);
  // The chunk held all device operations: there is nothing to replay, and why is said.
  expect_fault(place, "inspect cut.btr --replay", HasSubstr("btr_chunks_lost"));
}

TEST_F(Inspect, ATruncatedProfileSaysHowFarItWasRead) {
  const std::string packed = place.read("traces/samples/training/rank0.json.gz");
  place.write("cut.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(place.bubblesim("inspect cut.json.gz").out,
              ContainsRegex("cut.json.gz is truncated after [0-9]+ bytes of text, [0-9]+ events"));
  place.write("cut.json.gz", packed.substr(0, 400));
  expect_fault(place, "inspect cut.json.gz",
               ContainsRegex("truncated after [0-9]+ bytes of text, 0 events read"));
}

TEST_F(Inspect, JsonNamesItsFormatAndAllRanks) {
  const Json json = parse_json(succeed(place, "inspect traces/samples/training --json").out);
  EXPECT_EQ(json.value("format", ""), "bubblesim.inspect/1");
  EXPECT_EQ(json["job"]["ranks"], 4);
}

TEST_F(Inspect, DrawsAPicture) {
  EXPECT_EQ(place.bubblesim("inspect traces/samples/training --plot job.svg").code, 0);
  const std::string picture = place.read("job.svg");
  EXPECT_THAT(picture, HasSubstr("<svg "));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
}

TEST_F(Inspect, ReplayMeetsTheRecordingAndSlowerKernelsTakeLonger) {
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

// Ten launches a millisecond apart, all of whose kernels the file puts at one instant.
TEST_F(Inspect, AReplayThatDoesNotMeetTheRecordingIsNotTrusted) {
  Json events = Json::array();
  const auto event = [&](const char* kind, int tid, int at, int length, int number) {
    events.push_back({{"ph", "X"}, {"cat", kind}, {"name", "cudaLaunchKernel"}, {"pid", 0},
                      {"tid", tid}, {"ts", at}, {"dur", length},
                      {"args", {{"device", 0}, {"stream", 7}, {"correlation", number}}}});
  };
  for (int i = 1; i <= 10; ++i) {
    event("cuda_runtime", 1, 100, 5, i);
    event("kernel", 7, 100, 50, i);
  }
  place.write("equal.json", Json{{"schemaVersion", 1}, {"traceEvents", events}}.dump());
  const Outcome text = place.bubblesim("inspect equal.json --replay");
  EXPECT_EQ(text.code, 1) << text.out << text.err;
  EXPECT_THAT(text.out, ContainsRegex("worst rank [0-9.]+ %.* !\n! the replay does not meet"));
  const Outcome json = place.bubblesim("inspect equal.json --replay --json");
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(parse_json(json.out)["replay"].value("doubt", ""), HasSubstr("does not meet"));
}

// A call of 3 s at half the speed takes 6, of which a step holds 4.29.
TEST_F(Inspect, AWhatIfThatIsNotDoneWholeSaysSo) {
  const auto event = [](const char* kind, const char* name, int ts, int length, int number) {
    return Json{{"ph", "X"}, {"cat", kind}, {"name", name}, {"pid", 0}, {"tid", 7},
                {"ts", ts}, {"dur", length},
                {"args", {{"device", 0}, {"stream", 7}, {"correlation", number}}}};
  };
  const Json events = {event("user_annotation", "ProfilerStep#1", 50, 3'000'300, 0),
                       event("cuda_runtime", "cudaLaunchKernel", 100, 5, 1),
                       event("kernel", "work", 110, 50, 1),
                       event("cuda_runtime", "cudaFree", 200, 3'000'000, 2)};
  place.write("slow.json", Json{{"schemaVersion", 1}, {"traceEvents", events}}.dump());
  const std::string text =
      succeed(place, "inspect slow.json --what-if host=0.5 --what-if host=2").out;
  EXPECT_THAT(text, ContainsRegex("what if host=0.5:.*\n.*\n.* !\n! changed less than asked"));
  EXPECT_THAT(text, Not(ContainsRegex("what if host=2:.*\n.*\n.* !\n")));
  const Json json = parse_json(
      succeed(place, "inspect slow.json --what-if host=0.5 --what-if host=2 --json").out);
  EXPECT_EQ(json["what_if"][0]["spans_clamped"], 1);
  EXPECT_EQ(json["what_if"][1]["spans_clamped"], 0);
}

TEST_F(Inspect, AReplayOfOperationsWithoutLaunchesIsNotCalledACheck) {
  const auto kernel = [](int correlation, int ts) {
    return Json{{"ph", "X"}, {"cat", "kernel"}, {"name", "work"}, {"pid", 0}, {"tid", 7},
                {"ts", ts}, {"dur", 50},
                {"args", {{"device", 0}, {"stream", 7}, {"correlation", correlation}}}};
  };
  const Json trace = {{"schemaVersion", 1}, {"traceEvents", {kernel(1, 100), kernel(2, 200)}}};
  place.write("kernels.json", trace.dump());
  EXPECT_THAT(succeed(place, "inspect kernels.json --replay").out,
              HasSubstr("mean error 0.000 %, worst rank 0.000 %; not a check: 100 % of operations "
                        "have no launch call, and start when they were recorded"));
  const Json json = parse_json(succeed(place, "inspect kernels.json --replay --json").out);
  EXPECT_EQ(json["replay"]["ops_without_launch"], 2);
  EXPECT_THAT(json["replay"].value("doubt", ""), HasSubstr("not a check"));
  const Json whole =
      parse_json(succeed(place, "inspect traces/samples/training --replay --json").out);
  EXPECT_TRUE(whole["replay"]["doubt"].is_null());
}

TEST_F(Inspect, says_what_the_iteration_time_depends_on) {
  const Json whole = parse_json(succeed(place, "inspect traces/samples/training --json").out);
  const Json alone =
      parse_json(succeed(place, "inspect traces/samples/training --sensitivities --json").out);
  EXPECT_EQ(alone["sensitivities"], whole["job"]["sensitivities"]);
  double sum = 0;
  for (const char* what : {"kernels", "copies", "link", "host"}) {
    const double value = alone["sensitivities"][what];
    EXPECT_GE(value, 0) << what;
    sum += value;
  }
  EXPECT_GT(sum, 0.5);
  EXPECT_LE(sum, 1);
  EXPECT_THAT(succeed(place, "inspect traces/samples/training").out,
              HasSubstr("Sensitivities of the replayed iteration"));
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
  const Json tgs = parse_json(succeed(place, "policies tgs --json").out);
  ASSERT_EQ(tgs.size(), 1U);
  EXPECT_EQ(tgs[0].value("name", ""), "tgs");
}

}  // namespace
}  // namespace bubblesim::app_test
