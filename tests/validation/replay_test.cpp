// Every published trace that the data folder holds, replayed alone: the simulated iteration times
// against the recorded ones. Expected values come from real GPUs (V100, A100, H100, H200, RTX,
// Instinct); INDEX.tsv names the public repository, commit and file of each.
//
// As a program of its own it prints the errors: `validation_replay --table DATA_DIR`
// (scripts/validate-replay).
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/validation/replay_table.hpp"

#include "tests/folders.hpp"

namespace bubblesim::validation {
namespace {

// The best published replay of kernel traces has a mean error of 3.3 %.
constexpr double kMeanAllowed = 0.02;
constexpr double kWorstAllowed = 0.05;

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_data(kDataFolder)) GTEST_SKIP() << "no data folder at " << kDataFolder;
  }

  static void expect_small_errors(const std::vector<Replayed>& replays) {
    for (const Replayed& replay : replays) {
      EXPECT_EQ(replay.fault, "") << replay.name;
      EXPECT_LE(replay.report.mean_error(), kWorstAllowed) << replay.name;
    }
    const ReplayErrors errors = summarise(replays);
    EXPECT_GT(errors.count, 0U);
    EXPECT_LE(errors.mean, kMeanAllowed);
    std::printf("%zu replayed: mean error %.3f %%, worst %.3f %%\n", errors.count,
                100 * errors.mean, 100 * errors.worst);
  }
};

TEST_F(Replay, EachFileAloneMeetsItsRecordedIterationTimes) {
  std::vector<Replayed> replays = replay_all(single_files(kDataFolder));
  // The one file without a device operation is an input fault, not a replay.
  std::erase_if(replays, [](const Replayed& replay) {
    return replay.name.find("rank_non_gpu") != std::string::npos;
  });
  expect_small_errors(replays);
}

TEST_F(Replay, RanksOfAJobTogetherMeetTheirRecordedIterationTimes) {
  expect_small_errors(replay_all(whole_jobs(kDataFolder)));
}

}  // namespace
}  // namespace bubblesim::validation

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--table") {
    if (!bubblesim::validation::has_data(argv[2])) {
      std::fprintf(stderr, "%s: found no INDEX.tsv in it, expected the data folder\n", argv[2]);
      return 2;
    }
    std::fputs(bubblesim::validation::validation_page(argv[2]).c_str(), stdout);
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
