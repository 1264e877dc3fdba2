// Synthesised training jobs inside runs: the three published settings under every policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A config of configs/runs, shorter.
void write_short(const Workplace& place, const std::string& name, const std::string& as) {
  Json config = parse_json(place.read("configs/runs/" + name));
  ASSERT_TRUE(config.is_object()) << name;
  config["duration"] = "2s";
  config["warmup"] = "500ms";
  std::string text = config.dump();
  for (std::size_t up = text.find("../../"); up != std::string::npos; up = text.find("../../")) {
    text.erase(up, 6);
  }
  place.write(as, text);
}

const Json& policy_of(const Json& report, const std::string& name) {
  for (const Json& policy : report["policies"]) {
    if (policy["policy"] == name) return policy;
  }
  static const Json none;
  return none;
}

class SynthesisedRun : public testing::TestWithParam<const char*> {};

TEST_P(SynthesisedRun, RunsUnderEveryPolicyOfItsConfig) {
  const Workplace place;
  write_short(place, GetParam(), "run.json");
  const Outcome outcome = place.bubblesim("run run.json --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = parse_json(outcome.out);
  const Json config = parse_json(place.read("run.json"));
  for (const Json& policy : config["policies"]) {
    const Json& result = policy_of(report, policy);
    ASSERT_TRUE(result.is_object()) << policy;
    EXPECT_GT(result["training"]["iterations"], 0) << policy;
    EXPECT_GT(result["training"]["samples_per_s"], 0) << policy;
  }
  const Json& baseline = report["baseline"];
  EXPECT_TRUE(baseline["recorded_iteration_mean_ns"].is_null());
  EXPECT_TRUE(baseline["replay_error_fraction"].is_null());
  EXPECT_EQ(baseline["bubbles"].size(), report["ranks"]);
  for (const Json& gpu : baseline["bubbles"]) {
    if (gpu["bubbles"] == 0) continue;
    EXPECT_GT(gpu["free_memory_least_bytes"], 0) << gpu;
    EXPECT_GE(gpu["free_memory_mean_bytes"], gpu["free_memory_least_bytes"]) << gpu;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, SynthesisedRun,
                         testing::Values("dp-4xa100.json", "mp-4xa100.json", "pp-4xa100.json"),
                         [](const auto& run) { return std::string(run.param).substr(0, 2); });

TEST(SynthesisedRuns, APipelinesWaitsAreBubblesThatPipeFillFills) {
  const Workplace place;
  write_short(place, "pp-4xa100.json", "run.json");
  const Outcome outcome = place.bubblesim("run run.json --json --policy exclusive,pipefill");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = parse_json(outcome.out);
  for (const Json& gpu : report["baseline"]["bubbles"]) {
    EXPECT_GT(gpu["pipeline_time_ns"], 0) << gpu;
  }
  const Json& result = policy_of(report, "pipefill");
  EXPECT_GT(result["fillers"][0]["requests_completed"], 0);
}

TEST(SynthesisedRuns, FoldedRanksAreSaidInTableAndJson) {
  const Workplace place;
  write_short(place, "dp-4xa100.json", "whole.json");
  std::string config = place.read("whole.json");
  config.replace(config.find("\"nothing\""), 9, "\"all\"");
  place.write("run.json", config);
  const Outcome text = place.bubblesim("run run.json --policy exclusive");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("each simulated GPU stands for 4 of the job's 4 ranks"),
                              Not(HasSubstr("recorded")), Not(HasSubstr("replay error"))));
  const Json report = parse_json(place.bubblesim("run run.json --policy exclusive --json").out);
  EXPECT_EQ(report["ranks"], 1);
  EXPECT_EQ(report["ranks_per_gpu"], 4);
  EXPECT_EQ(report["world_size"], 4);
  const Outcome whole = place.bubblesim("run whole.json --policy exclusive --json");
  EXPECT_EQ(parse_json(whole.out)["ranks"], 4);
  EXPECT_EQ(parse_json(whole.out)["ranks_per_gpu"], 1);
}

TEST(SynthesisedRuns, TwiceAndOnSeveralThreadsGiveTheSameBytes) {
  const Workplace place;
  write_short(place, "pp-4xa100.json", "run.json");
  const std::string words = "run run.json --policy mps,specinf,pipefill --json --threads ";
  const Outcome on_one = place.bubblesim(words + "1");
  ASSERT_EQ(on_one.code, 0) << on_one.err;
  EXPECT_THAT(on_one.out, Not(IsEmpty()));
  EXPECT_EQ(on_one.out, place.bubblesim(words + "1").out);
  EXPECT_EQ(on_one.out, place.bubblesim(words + "4").out);
}

void expect_run_fault(const std::string& old_text, const std::string& new_text,
                      const testing::Matcher<const std::string&>& message) {
  const Workplace place;
  write_short(place, "dp-4xa100.json", "run.json");
  std::string text = place.read("run.json");
  const std::size_t at = text.find(old_text);
  ASSERT_NE(at, std::string::npos) << old_text;
  place.write("run.json", text.replace(at, old_text.size(), new_text));
  SCOPED_TRACE(new_text);
  expect_fault(place, "run run.json", message);
}

TEST(SynthesisedRuns, FaultsNameThePlaceAndTheNearest) {
  expect_run_fault("roberta-large", "roberta-larg", HasSubstr("did you mean \"roberta-large\"?"));
  expect_run_fault("\"synth\"", "\"trace\":\"traces/samples/training\",\"synth\"",
                   HasSubstr("/training: found both \"trace\" and \"synth\""));
  expect_run_fault("\"plan\":\"ddp-4\"",
                   R"("plan":{"data":4,"global_batch":30,"micro_batch":8})",
                   AllOf(HasSubstr("run.json: /training/synth/plan/global_batch"),
                         HasSubstr("nearest: 32")));
  expect_run_fault("\"plan\":\"ddp-4\"", R"("plan":{"dat":4,"global_batch":32})",
                   AllOf(HasSubstr("/training/synth/plan/dat"),
                         HasSubstr("did you mean \"data\"?")));
  expect_run_fault("\"model\":\"roberta-large\"", "\"model\":\"llama2-7b\"",
                   HasSubstr("nearest that fits"));
}

}  // namespace
}  // namespace bubblesim::app_test
