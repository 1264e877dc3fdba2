// Options that no example shows: what each of them changes.
#include <gmock/gmock.h>

#include <string>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;
using RetargetOptions = AtWorkplace;

/// What the command prints after `name`, up to the end of the line.
std::string printed(const Workplace& place, const std::string& arguments, const std::string& name) {
  for (const std::string& line : lines_of(succeed(place, arguments).out)) {
    const std::size_t at = line.find(name);
    if (at != std::string::npos) return line.substr(at + name.size());
  }
  ADD_FAILURE() << "no line of '" << arguments << "' has " << name;
  return {};
}

constexpr const char* kBert =
    "synth-inference --model bert-base --device h100 --batch 8 --sequence 128 ";
constexpr const char* kDrafted =
    "synth-inference --model llama2-7b --device h100 --prompt-tokens 16 --output-tokens 32 "
    "--draft llama-68m --acceptance ";

class SynthInferenceOptions : public AtWorkplace {};

// Three softmax kernels a layer in place of one fused attention: 12 layers, 36 kernels more.
TEST_F(SynthInferenceOptions, UnfusedAttentionHasThreeMoreKernelsALayer) {
  EXPECT_EQ(std::stoi(printed(place, std::string(kBert) + "--attention unfused", "kernels")),
            std::stoi(printed(place, std::string(kBert) + "--attention flash", "kernels")) + 36);
}

TEST_F(SynthInferenceOptions, WeightsInFp32TakeTwiceTheMemoryOfFp16) {
  EXPECT_THAT(printed(place, std::string(kBert) + "--precision fp16", "memory"),
              HasSubstr("weights 0.22"));
  EXPECT_THAT(printed(place, std::string(kBert) + "--precision fp32", "memory"),
              HasSubstr("weights 0.44"));
}

TEST_F(SynthInferenceOptions, EfficiencyOfAnotherDeviceGivesAnotherTime) {
  EXPECT_NE(printed(place, std::string(kBert) + "--efficiency v100-16gb", "a batch"),
            printed(place, kBert, "a batch"));
  expect_fault(place, std::string(kBert) + "--efficiency a100", HasSubstr("did you mean"));
}

TEST_F(SynthInferenceOptions, PassesAreIterationsOfTheTrace) {
  succeed(place, std::string(kBert) + "--passes 3 -o service.btr");
  const Json inspected = json_of(place, "inspect service.btr --json");
  EXPECT_EQ(inspected["job"]["iterations_recorded"], 3);
}

// A token that is always accepted lets every pass of the target yield the tree's depth and one.
TEST_F(SynthInferenceOptions, AcceptedTokensSavePasses) {
  const auto passes = [&](const char* acceptance) {
    return std::stoi(printed(place, std::string(kDrafted) + acceptance, "/s, "));
  };
  EXPECT_EQ(passes("0"), 32);
  EXPECT_GT(passes("0.5"), passes("0.9"));
}

TEST(ScheduleOptions, LargerGroupsKeepMoreActivations) {
  const Workplace place;
  const std::string plan = "schedule interleaved --stages 4 --micro-batches 8 --chunks 2 --group ";
  EXPECT_THAT(printed(place, plan + "4", "peak activations"), HasSubstr("11 9 7 5"));
  EXPECT_THAT(printed(place, plan + "8", "peak activations"), HasSubstr("15 13 11 9"));
  expect_fault(place, plan + "3", HasSubstr("expected at least one a rank"));
}

TEST(InspectOptions, TheIterationsThatCountCanBeChosen) {
  const Workplace place;
  const auto used = [&](const std::string& choice) {
    const Json json =
        json_of(place, "inspect traces/samples/training --json --use-iterations " + choice);
    return json["job"]["iterations_used"].get<int>();
  };
  EXPECT_EQ(used("1"), 1);
  EXPECT_EQ(used("1-2"), 2);
  EXPECT_EQ(used("all"), 4);
  expect_fault(place, "inspect traces/samples/training --use-iterations 9", HasSubstr("9"));
}

TEST_F(RetargetOptions, ARecordingOfTheSameDeviceKeepsItsTime) {
  const std::string to_h100 = "retarget traces/samples/training --device h100 -o job.btr";
  EXPECT_THAT(printed(place, to_h100 + " --recorded-device h100", "re-targeted "),
              HasSubstr("(+0.0 %)"));
  EXPECT_THAT(printed(place, to_h100, "re-targeted "), Not(HasSubstr("(+0.0 %)")));
}

TEST_F(RetargetOptions, TheTraceThatIsWrittenTakesTheTimeThatIsPrinted) {
  succeed(place, "retarget traces/samples/training --device h100 -o new/job.btr");
  const auto printed =
      parse_json(place.read("new/job.json"))["retargeted_iteration_ns"].get<double>();
  // The folder is a trace, too: the figures in it are left out.
  const Json inspected = json_of(place, "inspect new --json");
  EXPECT_NEAR(inspected["job"]["iteration_mean_ns"].get<double>(), printed, 0.0001 * printed);
}

/// What was recorded on a faster network takes longer on this one; on the same, as long.
TEST_F(RetargetOptions, CollectivesAreScaledFromTheRecordedCluster) {
  succeed(place, "synth --model bert-base --plan ddp-4 --cluster a100-40gb-4 --fold nothing "
                 "-o job.btr");
  const std::string retarget =
      "retarget job.btr --cluster a100-40gb-4 -o new.btr --recorded-cluster ";
  EXPECT_THAT(printed(place, retarget + "a100-40gb-4", "re-targeted "), HasSubstr("(+0.0 %)"));
  EXPECT_THAT(printed(place, retarget + "h100-dgx", "re-targeted "),
              AllOf(HasSubstr("(+"), Not(HasSubstr("(+0.0 %)"))));
}

TEST(RunOptions, LoadIsTheShareOfWhatAServiceAloneCanServe) {
  const Workplace place;
  const auto kept = [&](const std::string& load) {
    const Json json =
        json_of(place,
                "run traces/samples/training traces/samples/inference.json.gz --policy mps "
                "--mode online --duration 4s --warmup 1s --json --load " +
                    load);
    return json["policies"][0]["training"]["normalised_fraction"].get<double>();
  };
  EXPECT_GT(kept("0.1"), kept("0.4"));
  expect_fault(place, "run traces/samples/training traces/samples/inference.json.gz --load 20",
               HasSubstr("0.001"));
}

}  // namespace
}  // namespace bubblesim::app_test
