// Counterfactuals on recorded jobs: laws that hold whatever the numbers are.
#include <gtest/gtest.h>

#include "sim/workload/what_if.hpp"
#include "tests/fault.hpp"
#include "tests/folders.hpp"
#include "tests/validation/recorded_jobs.hpp"

namespace bubblesim::validation {
namespace {

using workload::ReplayReport;

class WhatIf : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_data(kDataFolder)) GTEST_SKIP() << "no data folder at " << kDataFolder;
  }

  static LoadedJob job(const std::string& name) {
    for (const RecordedJob& recorded : whole_jobs(kDataFolder)) {
      if (recorded.name.find(name) == std::string::npos) continue;
      auto loaded = load(recorded);
      EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
      if (loaded) return *loaded;
    }
    ADD_FAILURE() << "no job " << name;
    return {};
  }

  static ReplayReport replay(const LoadedJob& job, const std::string& change) {
    workload::JobProgram program = job.program;
    if (!change.empty()) {
      const auto parsed = workload::parse_what_if(change);
      EXPECT_TRUE(parsed) << change;
      if (parsed) workload::apply(*parsed, program);
    }
    return must(workload::replay_alone(program, job.device));
  }

  static Duration span(const ReplayReport& report, std::size_t rank) {
    return report.ranks[rank].simulated_span;
  }

  static bool has_collectives(const LoadedJob& job) {
    for (const auto& rank : job.program.ranks) {
      for (const auto& op : rank.ops) {
        if (op.kind == program::WorkKind::kCollective) return true;
      }
    }
    return false;
  }
};

// A stalled replay is a failure of its own; ranks are compared only if both finished.
#define ASSERT_SAME_RANKS(a, b)                       \
  ASSERT_FALSE((a).ranks.empty());                    \
  ASSERT_EQ((a).ranks.size(), (b).ranks.size())

TEST_F(WhatIf, ASpeedOfOneChangesNotANanosecond) {
  for (const char* name : {"resnet18", "sst_long_a2a_optimizer_3", "modded-nanogpt"}) {
    const LoadedJob loaded = job(name);
    const ReplayReport before = replay(loaded, "");
    for (const char* change : {"compute=1", "kernels=1", "link=1", "host=1", "copies=1"}) {
      const ReplayReport after = replay(loaded, change);
      ASSERT_SAME_RANKS(before, after);
      for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
        EXPECT_EQ(after.ranks[rank].simulated, before.ranks[rank].simulated)
            << name << ", " << change;
        EXPECT_EQ(span(after, rank), span(before, rank)) << name << ", " << change;
      }
    }
  }
}

// On the device's critical path most of the time: modded-nanogpt (8 x H100) and TorchRec's long
// all-to-all (4 x V100).
TEST_F(WhatIf, KernelsAtHalfSpeedMakeEveryRankLonger) {
  for (const char* name : {"sst_long_a2a_optimizer_3", "modded-nanogpt"}) {
    const LoadedJob loaded = job(name);
    const ReplayReport before = replay(loaded, "");
    const ReplayReport after = replay(loaded, "kernels=0.5");
    ASSERT_SAME_RANKS(before, after);
    for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
      EXPECT_GT(span(after, rank), span(before, rank)) << name << ", rank " << rank;
      EXPECT_LE(span(after, rank), 2 * span(before, rank)) << name << ", rank " << rank;
    }
  }
}

// Kernels of the small two-rank job take 0.6 % of its time, behind a host that is always late:
// twice as long they still hide behind it; a thousand times as long they are six times the span.
TEST_F(WhatIf, KernelsBehindASlowHostCostNothingUntilTheyAreLongerThanItsWork) {
  const LoadedJob loaded = job("resnet18");
  const ReplayReport before = replay(loaded, "");
  const ReplayReport twice = replay(loaded, "kernels=0.5");
  const ReplayReport thousandfold = replay(loaded, "kernels=0.001");
  ASSERT_SAME_RANKS(before, twice);
  ASSERT_SAME_RANKS(before, thousandfold);
  for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
    EXPECT_GE(span(twice, rank), span(before, rank)) << rank;
    EXPECT_LE(to_seconds(span(twice, rank)), 1.006 * to_seconds(span(before, rank))) << rank;
    EXPECT_GT(span(thousandfold, rank), 2 * span(before, rank)) << rank;
  }
}

TEST_F(WhatIf, OneSlowRankMakesAllRanksLonger) {
  for (const char* name : {"resnet18", "sst_long_a2a_optimizer_3"}) {
    const LoadedJob loaded = job(name);
    const ReplayReport before = replay(loaded, "");
    const ReplayReport after = replay(loaded, "kernels@0=0.001");
    ASSERT_SAME_RANKS(before, after);
    for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
      EXPECT_GT(span(after, rank), span(before, rank)) << name << ", rank " << rank;
    }
  }
}

TEST_F(WhatIf, ASlowLinkMakesJobsLongerThatMeetInCollectives) {
  for (const char* name : {"sst_long_a2a_optimizer_3", "modded-nanogpt"}) {
    const LoadedJob loaded = job(name);
    ASSERT_FALSE(loaded.program.collectives.empty()) << name;
    const ReplayReport before = replay(loaded, "");
    const ReplayReport after = replay(loaded, "link=0.5");
    ASSERT_SAME_RANKS(before, after);
    for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
      EXPECT_GT(span(after, rank), span(before, rank)) << name << ", rank " << rank;
    }
  }
}

TEST_F(WhatIf, ASlowLinkChangesNothingWithoutCollectives) {
  std::size_t compared = 0;
  for (const RecordedJob& recorded : single_files(kDataFolder)) {
    if (recorded.name.find("segment-anything-fast") == std::string::npos) continue;
    const auto loaded = must(load(recorded));
    if (has_collectives(loaded)) continue;
    const ReplayReport before = replay(loaded, "");
    const ReplayReport after = replay(loaded, "link=0.5");
    ASSERT_SAME_RANKS(before, after);
    EXPECT_EQ(span(after, 0), span(before, 0)) << recorded.name;
    ++compared;
  }
  EXPECT_GT(compared, 0U);
}

}  // namespace
}  // namespace bubblesim::validation
