// The sweeps that a user starts from: each is planned whole, and some of its runs are done, made
// short.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

/// What makes each short, and how many runs are done: enough to meet every policy's kind.
const std::map<std::string, std::string> kShort{
    {"devices", "--set /duration=300ms --set /warmup=100ms --limit 2"},
    {"load-latency", "--set /duration=500ms --set /warmup=100ms --limit 2"},
    {"pipefill-scale",
     "--set /iterations=1 --set /training/synth/plan/global_batch=128 --limit 1"},
    {"policies", "--set /duration=500ms --set /warmup=100ms --limit 2"},
    {"specinf", "--set /duration=500ms --set /warmup=100ms --limit 2"}};

std::vector<std::string> sweep_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(BUBBLESIM_SOURCE_DIR "/configs/sweeps")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class SweepFile : public testing::TestWithParam<std::string> {};

TEST_P(SweepFile, RunsAndSaysWhatItAnswersAndHowLongItTakes) {
  const Workplace place;
  const std::string file = "configs/sweeps/" + GetParam() + ".json";
  const Json sweep = parse_json(place.read(file));
  EXPECT_EQ(sweep["name"], GetParam()) << "the store is called by it";
  std::string comment;
  for (const Json& line : sweep["comment"]) comment += line.get<std::string>() + " ";
  EXPECT_THAT(comment, AllOf(HasSubstr("Answers:"), HasSubstr(" of one core: "),
                             HasSubstr(" on two cores")));
  ASSERT_TRUE(kShort.contains(GetParam())) << "say in this test how it is made short";
  const Outcome done = place.bubblesim("sweep " + file + " --threads 2 --store runs.db --json " +
                                       kShort.at(GetParam()));
  ASSERT_EQ(done.code, 0) << done.out << done.err;
  const Json end = last_event(done.out);
  EXPECT_GE(end["done"], 1);
  EXPECT_THAT(comment, HasSubstr(" " + std::to_string(end["runs"].get<int>()) + " runs"));
}

INSTANTIATE_TEST_SUITE_P(Configs, SweepFile, testing::ValuesIn(sweep_files()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace bubblesim::app_test
