// What is known before anything starts, of the pairs that the campaign measures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "policies/builtin.hpp"
#include "sim/measure/measure.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::measure {
namespace {

const std::filesystem::path kConfigFolder = BUBBLESIM_SOURCE_DIR "/configs";

run::LoadedRun load_pair(const std::filesystem::path& file, const policy::Registry& registry) {
  const auto config = run::read_run_config(file.string(), registry);
  EXPECT_TRUE(config) << file;
  const auto loaded = run::load_run(*config, (kConfigFolder / "devices").string(), {});
  EXPECT_TRUE(loaded) << file;
  return *run::lone_rank(*loaded, 0);
}

std::vector<std::string> texts(const Errors& faults) {
  std::vector<std::string> texts;
  for (const Error& fault : faults) texts.push_back(fault.text());
  return texts;
}

TEST(Measurable, EveryPolicyOfEveryPairOfTheCampaignIsOnAGpu) {
  const policy::Registry registry = policies::builtin_policies();
  const capture::RigPlace gpu;
  int pairs = 0;
  for (const auto& file : std::filesystem::directory_iterator(kConfigFolder / "measure")) {
    if (file.path().extension() != ".json") continue;
    ++pairs;
    const run::LoadedRun pair = load_pair(file.path(), registry);
    EXPECT_THAT(texts(check_measurable(pair, registry, gpu)), testing::IsEmpty()) << file;
  }
  EXPECT_GT(pairs, 0);
}

TEST(Measurable, MemoryThatDoesNotFitBesideTrainingIsNotOnAGpu) {
  const policy::Registry registry = policies::builtin_policies();
  run::LoadedRun pair =
      load_pair(kConfigFolder / "measure/vgg19-dp--resnet50-online--tgs.json", registry);
  pair.device.memory = Bytes{1};
  EXPECT_THAT(texts(check_measurable(pair, registry, {})),
              testing::Contains(testing::HasSubstr("policy tgs: leaves memory of jobs off")));
}

TEST(Measurable, PowerIsTheAdministrators) {
  const policy::Registry registry = policies::builtin_policies();
  run::LoadedRun pair = load_pair(kConfigFolder / "measure/gpt2-pp--encoder-online.json", registry);
  pair.config.power.emplace().cap_w = 300;
  EXPECT_THAT(texts(check_measurable(pair, registry, {})),
              testing::ElementsAre(testing::HasSubstr("/power: a GPU's cap and clock are set by "
                                                      "its administrator (nvidia-smi -pl, -lgc)")));
}

}  // namespace
}  // namespace bubblesim::measure
