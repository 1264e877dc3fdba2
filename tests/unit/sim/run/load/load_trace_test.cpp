// Finding and reading traces: a file, a folder, both kinds together, and what cannot be read.
#include "sim/run/load_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "traces/format/trace_writer.hpp"

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kSamples = fs::path(BUBBLESIM_SOURCE_DIR) / "traces/samples";

class LoadTrace : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "bubblesim-load-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string sample(int rank) {
    return (kSamples / "training" / ("rank" + std::to_string(rank) + ".json.gz")).string();
  }

  // The sample's rank as a .btr file in the test's folder.
  std::string btr(int rank) const {
    const auto trace = load_trace({sample(rank)});
    EXPECT_TRUE(trace);
    const std::string path = (folder_ / ("rank" + std::to_string(rank) + ".btr")).string();
    EXPECT_TRUE(traces::format::write_job(path, trace->job));
    return path;
  }

  static std::vector<std::uint32_t> ranks(const LoadedTrace& trace) {
    std::vector<std::uint32_t> found;
    for (const auto& rank : trace.job.ranks) found.push_back(rank.rank);
    return found;
  }

  static std::string fault(const std::vector<std::string>& paths) {
    const auto trace = load_trace(paths);
    EXPECT_FALSE(trace);
    return trace ? "" : trace.error().text();
  }

  fs::path folder_;
};

TEST_F(LoadTrace, OneFileIsOneRank) {
  const auto trace = load_trace({sample(2)});
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(ranks(*trace), std::vector<std::uint32_t>{2});
  EXPECT_FALSE(trace->job.ranks.front().device_ops.empty());
}

TEST_F(LoadTrace, AFolderIsAJobWithItsRanksInOrder) {
  const auto trace = load_trace({(kSamples / "training").string()});
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(ranks(*trace), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(LoadTrace, FilesOfBothKindsAreOneJobInOrderOfRank) {
  const auto trace = load_trace({btr(3), sample(1), btr(0), sample(2)});
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(ranks(*trace), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(LoadTrace, AFolderMayHoldBothKindsAndOtherFiles) {
  (void)btr(0);
  fs::copy_file(sample(1), folder_ / "rank1.json.gz");
  std::ofstream(folder_ / "notes.txt") << "not a trace";
  const auto trace = load_trace({folder_.string()});
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(ranks(*trace), (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(LoadTrace, AMissingPathIsNamed) {
  EXPECT_THAT(fault({"nowhere"}), HasSubstr("nowhere: found no such file or folder"));
}

TEST_F(LoadTrace, AFolderWithoutTracesSaysWhatItLookedFor) {
  EXPECT_THAT(fault({folder_.string()}),
              HasSubstr("found no .btr, .json, .et or .sqlite file"));
}

TEST_F(LoadTrace, ARankTwiceIsRefusedWithBothFiles) {
  const std::string first = btr(1);
  EXPECT_THAT(fault({first, sample(1)}), HasSubstr("found rank 1 a second time"));
  EXPECT_THAT(fault({sample(1), sample(1)}), HasSubstr("rank1.json.gz"));
}

TEST_F(LoadTrace, ProgressNamesTheFile) {
  std::string last;
  ASSERT_TRUE(load_trace({sample(0)}, [&](const std::string& text) { last = text; }));
  EXPECT_THAT(last, HasSubstr("rank0.json.gz"));
}

}  // namespace
}  // namespace bubblesim::run
