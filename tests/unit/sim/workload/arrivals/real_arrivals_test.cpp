// Published request traces, where the data folder has them.
#include <gtest/gtest.h>

#include <filesystem>

#include "sim/workload/arrivals/arrival_file.hpp"

namespace bubblesim::workload {
namespace {

class RealArrivals : public testing::Test {
 protected:
  /// Skips the test if the file is not there.
  void read(const std::string& name, ArrivalFormat format) {
    const std::string path = BUBBLESIM_DATA_DIR "/" + name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    auto arrivals = read_arrivals(path, format);
    ASSERT_TRUE(arrivals) << arrivals.error().text();
    arrivals_ = *std::move(arrivals);
    EXPECT_TRUE(arrivals_.counters.empty());
  }
  [[nodiscard]] std::size_t count() const { return arrivals_.offsets.size(); }
  [[nodiscard]] Duration last() const { return arrivals_.offsets.back(); }

  RecordedArrivals arrivals_;
};

// First 18:15:46.6805900, last 19:14:08.4025270: 3501.721937 s.
TEST_F(RealArrivals, AzureConversationsOf2023) {
  read("Azure+AzurePublicDataset/data/AzureLLMInferenceTrace_conv.csv.gz", ArrivalFormat::kAzure);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(count(), 19366U);
  EXPECT_EQ(last(), Duration{3'501'721'937'000});
}

// The same requests as Azure's, in seconds from the first.
TEST_F(RealArrivals, SplitwiseConversations) {
  read("microsoft+vidur/data/processed_traces/splitwise_conv.csv.gz", ArrivalFormat::kSplitwise);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(count(), 19366U);
  EXPECT_EQ(last(), Duration{3'501'721'937'000});
  EXPECT_EQ(arrivals_.offsets[1], Duration{4'314'579'000});
}

// The last line has "timestamp": 3536999, the first 0.
TEST_F(RealArrivals, MooncakeConversations) {
  read("kvcache-ai+Mooncake/FAST25-release/traces/conversation_trace.jsonl.gz",
       ArrivalFormat::kMooncake);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(count(), 12031U);
  EXPECT_EQ(last(), std::chrono::milliseconds{3'536'999});
}

TEST_F(RealArrivals, OrionGaps) {
  read("eth-easl+orion/artifact_evaluation/fig10/inter_arrival_times.json", ArrivalFormat::kGaps);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(arrivals_.offsets[0], std::chrono::milliseconds{31});
  EXPECT_EQ(arrivals_.offsets[1], std::chrono::milliseconds{43});
}

// A hundred queries; the last at 3.1156678999900818 s.
TEST_F(RealArrivals, DeltazipQueries) {
  read("eth-easl+deltazip/artifact/workloads/3b-lmsys_trace/trace.json", ArrivalFormat::kQueries);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(count(), 100U);
  EXPECT_EQ(last(), Duration{3'115'667'899});
}

}  // namespace
}  // namespace bubblesim::workload
