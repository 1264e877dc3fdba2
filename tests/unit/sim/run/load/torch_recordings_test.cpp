// Who meets whom in recordings as PyTorch's versions write them: every meeting is known, and found.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sim/run/load_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/run/load/torch_recordings.hpp"

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;
using testing::Groups;
using testing::Job;
using testing::Names;
using testing::Recording;
using testing::Sends;
using testing::Torch;

constexpr std::array kAll{Torch::k1_13, Torch::k2_1, Torch::k2_2, Torch::k2_4,
                          Torch::k2_7,  Torch::k2_9, Torch::k2026};
constexpr std::array kVersions{"1.13", "2.1", "2.2", "2.4", "2.7", "2.9", "2026"};

class TorchRecordings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "bubblesim-torch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  workload::JobProgram program_of(const Recording& recording,
                                  workload::Window window = workload::Window::kWhole) {
    const std::vector<std::string> files = recording.files();
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      std::ofstream(folder_ / ("rank" + std::to_string(rank) + ".json")) << files[rank];
    }
    const auto trace = load_trace({folder_.string()});
    EXPECT_TRUE(trace) << trace.error().text();
    CounterSet counters;
    device_ = device_for_replay(trace->job, fs::path(BUBBLESIM_SOURCE_DIR) / "configs/devices",
                                counters).value();
    return workload::build_job_program(trace->job, device_, {window}).value();
  }

  /// Of the recording's meetings, those that have their kernels and no others.
  static int found(const Recording& recording, const workload::JobProgram& job) {
    std::map<int, std::set<std::uint32_t>> collectives;  // of each meeting
    std::map<int, std::uint32_t> kernels;
    for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
      const std::vector<int> meetings = recording.meetings(rank);
      EXPECT_EQ(meetings.size(), job.ranks[rank].ops.size());
      for (std::size_t op = 0; op < meetings.size(); ++op) {
        if (meetings[op] < 0) continue;
        collectives[meetings[op]].insert(job.ranks[rank].ops[op].collective);
        ++kernels[meetings[op]];
      }
    }
    int count = 0;
    for (const auto& [meeting, numbers] : collectives) {
      if (numbers.size() != 1 || *numbers.begin() == program::kNoIndex) continue;
      if (job.collectives[*numbers.begin()].participants == kernels[meeting]) ++count;
    }
    return count;
  }

  void expect_all_found(const Job& what) {
    const Recording recording(what);
    const workload::JobProgram job = program_of(recording);
    EXPECT_EQ(found(recording, job), recording.meeting_count());
    EXPECT_EQ(job.counters.count("program_collectives_not_joined"), 0U);
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }

  fs::path folder_;
  hardware::GpuSpec device_;
};

TEST_F(TorchRecordings, PipelinesMeetInEveryVersion) {
  for (const Torch torch : kAll) {
    for (const std::uint32_t stages : {2, 4, 8}) {
      for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
        for (const Groups groups : {Groups::kOne, Groups::kPerNeighbour}) {
          SCOPED_TRACE(fmt::format("{}, {} stages, {}, {}", kVersions[static_cast<int>(torch)],
                                   stages, sends == Sends::kBatched ? "batched" : "single",
                                   groups == Groups::kOne ? "one group" : "a group a pair"));
          expect_all_found({.torch = torch, .stages = stages, .sends = sends, .groups = groups});
        }
      }
    }
  }
}

TEST_F(TorchRecordings, TensorAndDataGroupsMeet) {
  for (const Torch torch : kAll) {
    for (const Names names : {Names::kUnique, Names::kShared}) {
      for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
        SCOPED_TRACE(fmt::format("{}, {}, {}", kVersions[static_cast<int>(torch)],
                                 names == Names::kShared ? "shared names" : "unique names",
                                 sends == Sends::kBatched ? "batched" : "single"));
        // Before 2.4 nothing names groups: what ends together is one, so that a rank has one;
        // before 2.2 nothing tells the exchanges of two tensor ranks apart.
        if (torch <= Torch::k2_1 && sends == Sends::kBatched) continue;
        const std::uint32_t data = torch < Torch::k2_4 ? 1 : 2;
        expect_all_found({.torch = torch, .stages = 4, .tensor = 2, .data = data, .sends = sends,
                          .names = names});
      }
    }
  }
}

// Rank 0 takes twice its 1,000 us, four times an iteration: the others are late as it is.
class SlowRank : public TorchRecordings, public ::testing::WithParamInterface<Torch> {
 protected:
  void expect_all_late(const char* kind, Job what, std::int64_t least) {
    what.torch = GetParam();
    SCOPED_TRACE(fmt::format("{} of {} ranks, {}, {}", kind, what.stages * what.tensor * what.data,
                             what.sends == Sends::kBatched ? "batched" : "single",
                             what.groups == Groups::kOne ? "one group" : "a group a pair"));
    workload::JobProgram job = program_of(Recording(what), workload::Window::kIterations);
    const auto before = workload::repeat_alone(job, device_).value();
    workload::apply(workload::parse_what_if("compute@0=0.5").value(), job);
    const auto after = workload::repeat_alone(job, device_).value();
    for (std::size_t rank = 0; rank < after.ranks.size(); ++rank) {
      const Duration later = mean(after.ranks[rank]) - mean(before.ranks[rank]);
      EXPECT_GT(later, std::chrono::microseconds(least)) << "rank " << rank;
      EXPECT_LE(later, std::chrono::microseconds(4'000)) << "rank " << rank;
    }
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }

 private:
  static Duration mean(const workload::RankReplay& rank) {
    Duration sum{};
    for (const Duration iteration : rank.simulated) sum += iteration;
    return sum / static_cast<std::int64_t>(rank.simulated.size());
  }
};

// Forward each stage is 2,000 later; backward too, less what the second micro-batch came later than
// the first's end.
TEST_P(SlowRank, DelaysItsPipeline) {
  for (const std::uint32_t stages : {2, 4, 8}) {
    for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
      for (const Groups groups : {Groups::kOne, Groups::kPerNeighbour}) {
        expect_all_late("pipeline", {.stages = stages, .sends = sends, .groups = groups}, 3'700);
      }
    }
  }
}

// An all-reduce follows each kernel, or all four: 4,000 less what the others begin later, which is
// up to 13 in a tensor group, up to 97 a replica.
TEST_P(SlowRank, DelaysItsTensorAndDataGroups) {
  for (const std::uint32_t ranks : {2, 4}) {
    expect_all_late("tensor group", {.stages = 1, .tensor = ranks}, 4'000 - 14 * ranks);
    expect_all_late("data group", {.stages = 1, .data = ranks}, 4'000 - 98 * ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, SlowRank, ::testing::ValuesIn(kAll), [](const auto& version) {
  std::string name = kVersions[static_cast<int>(version.param)];
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace bubblesim::run
