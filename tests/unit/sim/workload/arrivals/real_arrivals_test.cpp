// PublishedArrivals request traces, where the data folder has them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/arrivals/arrival_file.hpp"
#include "tests/fault.hpp"

namespace bubblesim::workload {
namespace {

struct PublishedArrivals {
  const char* name;
  const char* file;
  ArrivalFormat format;
  std::size_t count;
  std::vector<std::pair<std::size_t, Duration>> offsets;  ///< of some arrivals
};

class RealArrivals : public testing::TestWithParam<PublishedArrivals> {};

TEST_P(RealArrivals, AreReadInFull) {
  const std::string path = std::string(BUBBLESIM_DATA_DIR "/") + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto arrivals = must(read_arrivals(path, GetParam().format));
  EXPECT_TRUE(arrivals.counters.empty());
  EXPECT_EQ(arrivals.offsets.size(), GetParam().count);
  for (const auto& [place, offset] : GetParam().offsets) {
    EXPECT_EQ(arrivals.offsets.at(place), offset) << place;
  }
}

const PublishedArrivals kPublished[] = {
    // First 18:15:46.6805900, last 19:14:08.4025270: 3501.721937 s.
    {"AzureConversationsOf2023",
     "Azure+AzurePublicDataset/data/AzureLLMInferenceTrace_conv.csv.gz", ArrivalFormat::kAzure,
     19366, {{19365, Duration{3'501'721'937'000}}}},
    // The same requests as Azure's, in seconds from the first.
    {"SplitwiseConversations", "microsoft+vidur/data/processed_traces/splitwise_conv.csv.gz",
     ArrivalFormat::kSplitwise, 19366,
     {{1, Duration{4'314'579'000}}, {19365, Duration{3'501'721'937'000}}}},
    // The last line has "timestamp": 3536999, the first 0.
    {"MooncakeConversations",
     "kvcache-ai+Mooncake/FAST25-release/traces/conversation_trace.jsonl.gz",
     ArrivalFormat::kMooncake, 12031, {{12030, std::chrono::milliseconds{3'536'999}}}},
    {"OrionGaps", "eth-easl+orion/artifact_evaluation/fig10/inter_arrival_times.json",
     ArrivalFormat::kGaps, 6240,
     {{0, std::chrono::milliseconds{31}}, {1, std::chrono::milliseconds{43}}}},
    // A hundred queries; the last at 3.1156678999900818 s.
    {"DeltazipQueries", "eth-easl+deltazip/artifact/workloads/3b-lmsys_trace/trace.json",
     ArrivalFormat::kQueries, 100, {{99, Duration{3'115'667'899}}}},
};

INSTANTIATE_TEST_SUITE_P(All, RealArrivals, testing::ValuesIn(kPublished),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace bubblesim::workload
