// Who meets whom, by recorder: the table of TABLE.md, and what follows from it for other ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/run/load_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/conformance/meetings/recorders.hpp"
#include "tests/conformance/meetings/recording.hpp"

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;
using testing::Announced, testing::Groups, testing::Job, testing::Names, testing::Noise;
using testing::Nvtx, testing::Recording, testing::Sends, testing::Torch;

constexpr std::array kAll{Torch::k1_13, Torch::k2_1, Torch::k2_2, Torch::k2_4,
                          Torch::k2_7,  Torch::k2_9, Torch::k2026};
constexpr std::array kVersions{"1.13", "2.1", "2.2", "2.4", "2.7", "2.9", "2026"};

enum class Recorder { kKineto, kNsightKernels, kNsight, kOwnRanges, kOwn };

struct Row {
  const char* name;
  Recorder recorder;
  Torch torch;
};
constexpr std::array kRows{
    Row{"PyTorch 1.13", Recorder::kKineto, Torch::k1_13},
    Row{"PyTorch 2.1", Recorder::kKineto, Torch::k2_1},
    Row{"PyTorch 2.2", Recorder::kKineto, Torch::k2_2},
    Row{"PyTorch 2.4", Recorder::kKineto, Torch::k2_4},
    Row{"PyTorch 2.7", Recorder::kKineto, Torch::k2_7},
    Row{"PyTorch 2.9", Recorder::kKineto, Torch::k2_9},
    Row{"PyTorch of 2026", Recorder::kKineto, Torch::k2026},
    Row{"Nsight, kernels alone", Recorder::kNsightKernels, Torch::k2_9},
    Row{"Nsight, NCCL's ranges", Recorder::kNsight, Torch::k2_9},
    Row{"bubblesim, NCCL's ranges", Recorder::kOwnRanges, Torch::k2_9},
    Row{"bubblesim, NCCL's profiler", Recorder::kOwn, Torch::k2_9}};

/// Of meetings, and of the kernels that meet nobody.
struct Tally {
  std::uint64_t meetings = 0, found = 0, wrong = 0;
  std::uint64_t unjoined = 0, counted = 0;

  Tally& operator+=(const Tally& other) {
    meetings += other.meetings;
    found += other.found;
    wrong += other.wrong;
    unjoined += other.unjoined;
    counted += other.counted;
    return *this;
  }
};

/// A meeting is found if its kernels are in one collective, and no others; a collective of other
/// kernels is wrong.
Tally tally_of(const Recording& recording, const workload::JobProgram& job) {
  Tally tally{static_cast<std::uint64_t>(recording.meeting_count()), 0, 0, 0,
              job.counters.count("program_collectives_not_joined")};
  std::map<int, std::size_t> kernels;  // of each meeting
  std::vector<std::vector<int>> made(job.collectives.size());
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    EXPECT_EQ(recording.kernels(rank).size(), job.ranks[rank].ops.size());
    for (std::size_t op = 0; op < job.ranks[rank].ops.size(); ++op) {
      const int meeting = recording.kernels(rank)[op].meeting;
      if (meeting < 0) continue;
      ++kernels[meeting];
      const std::uint32_t collective = job.ranks[rank].ops[op].collective;
      if (collective == program::kNoIndex) ++tally.unjoined;
      else made[collective].push_back(meeting);
    }
  }
  for (const std::vector<int>& meetings : made) {
    const bool one = std::ranges::count(meetings, meetings[0]) == std::ssize(meetings);
    ++(one && meetings.size() == kernels[meetings[0]] ? tally.found : tally.wrong);
  }
  return tally;
}

class Meetings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "bubblesim-meetings-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const Recording& recording, Recorder recorder) {
    switch (recorder) {
      case Recorder::kNsightKernels: return write_nsight(recording, Nvtx::kNone, folder_);
      case Recorder::kNsight: return write_nsight(recording, Nvtx::kRanges, folder_);
      case Recorder::kOwnRanges: return write_own(recording, Announced::kByRanges, folder_);
      case Recorder::kOwn: return write_own(recording, Announced::kByProfiler, folder_);
      case Recorder::kKineto: break;
    }
    const std::vector<std::string> files = recording.files();
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      std::ofstream(folder_ / ("rank" + std::to_string(rank) + ".json")) << files[rank];
    }
  }

  workload::JobProgram program_of(const Recording& recording,
                                  workload::Window window = workload::Window::kWhole,
                                  Recorder recorder = Recorder::kKineto) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    write(recording, recorder);
    const auto trace = load_trace({folder_.string()});
    EXPECT_TRUE(trace) << trace.error().text();
    CounterSet counters;
    device_ = device_for_replay(trace->job, fs::path(BUBBLESIM_SOURCE_DIR) / "configs/devices",
                                counters).value();
    return workload::build_job_program(trace->job, device_, {window}).value();
  }

  /// Of even and of noisy times. Nothing is wrong, and what is left out is counted.
  Tally tally_of_all(Job what, Recorder recorder = Recorder::kKineto) {
    Tally sum;
    for (const Noise noise : {Noise::kNone, Noise::kSome}) {
      what.noise = noise;
      const Recording recording(what);
      const Tally tally =
          tally_of(recording, program_of(recording, workload::Window::kWhole, recorder));
      EXPECT_EQ(tally.wrong, 0U);
      EXPECT_EQ(tally.counted, tally.unjoined);
      sum += tally;
    }
    return sum;
  }

  fs::path folder_;
  hardware::GpuSpec device_;
};

struct Shape {
  const char* name;
  std::uint32_t stages, tensor, data;
};
constexpr std::array kShapes{
    Shape{"2 stages", 2, 1, 1},        Shape{"4", 4, 1, 1},
    Shape{"8", 8, 1, 1},               Shape{"4, tensor 2", 4, 2, 1},
    Shape{"4, data 2", 4, 1, 2},       Shape{"4, both", 4, 2, 2}};

TEST_F(Meetings, AreThoseOfTheTable) {
  std::string table = "| recorder | sends | communicators |";
  for (const Shape& shape : kShapes) table += fmt::format(" {} |", shape.name);
  table += " wrong | left out, counted |\n|---|---|---|";
  for (std::size_t i = 0; i < kShapes.size() + 2; ++i) table += "---:|";
  for (const auto& [recorder_name, recorder, torch] : kRows) {
    for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
      for (const Groups groups : {Groups::kOne, Groups::kPerNeighbour}) {
        table += fmt::format("\n| {} | {} | {} |", recorder_name,
                             sends == Sends::kBatched ? "batched" : "single",
                             groups == Groups::kOne ? "one" : "several");
        Tally all;
        for (const auto& [name, stages, tensor, data] : kShapes) {
          const Tally tally = tally_of_all({.torch = torch, .stages = stages, .tensor = tensor,
                                            .data = data, .sends = sends, .groups = groups},
                                           recorder);
          table += fmt::format(" {}/{} |", tally.found, tally.meetings);
          all += tally;
        }
        table += fmt::format(" {} | {} |", all.wrong, all.counted);
      }
    }
  }
  std::ifstream page(fs::path(BUBBLESIM_SOURCE_DIR) / "tests/conformance/meetings/TABLE.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(text.find("\n\n" + table + "\n"), std::string::npos) << table;
}

// From 2.4 on groups have names and ranks, which tell groups of one name apart.
TEST_F(Meetings, AreAllFoundWhereGroupsHaveNames) {
  for (const Torch torch : kAll) {
    if (torch < Torch::k2_4) continue;
    for (const Names names : {Names::kUnique, Names::kShared}) {
      for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
        const Tally tally = tally_of_all({.torch = torch, .stages = 4, .tensor = 2, .data = 2,
                                          .sends = sends, .names = names});
        EXPECT_EQ(tally.found, tally.meetings) << kVersions[static_cast<int>(torch)];
        EXPECT_EQ(tally.counted, 0U);
      }
    }
  }
}

// Rank 0 takes twice its 1,000 us, four times an iteration: the others are late as it is.
class SlowRank : public Meetings, public ::testing::WithParamInterface<Torch> {
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
