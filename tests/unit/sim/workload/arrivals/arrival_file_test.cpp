#include "sim/workload/arrivals/arrival_file.hpp"
#include "tests/fault.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <tuple>
#include <vector>

namespace bubblesim::workload {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(ArrivalFile, TimesOfEachFormatCountFromTheFirstArrival) {
  struct Case {
    ArrivalFormat format;
    const char* text;
    std::vector<Duration> offsets;
  };
  for (const Case& file : {
           Case{ArrivalFormat::kAzure,
                "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\r\n"
                "2023-11-16 18:15:50.9951690,396,109\r\n",
                {Duration{0}, Duration{4'314'579'000}}},
           {ArrivalFormat::kSplitwise, "tokens,arrived_at\n5,1.5\n6,1.75\n",
            {Duration{0}, milliseconds{250}}},
           {ArrivalFormat::kMooncake,  // milliseconds
            "{\"timestamp\": 3000, \"hash_ids\": [1, {\"timestamp\": 9}]}\n\n"
            "{\"input_length\": 7, \"timestamp\": 3012.5}\n",
            {Duration{0}, Duration{12'500'000}}},
           {ArrivalFormat::kBundle,  // seconds
            "{\"arrival_time\": 1787267980.25, \"input_toks\": 7}\n"
            "{\"arrival_time\": 1787267981.0}\n",
            {Duration{0}, milliseconds{750}}},
           {ArrivalFormat::kGaps, "[0.031, 0.012, 1e-3]",
            {milliseconds{31}, milliseconds{43}, milliseconds{44}}},
           // Every digit down to a nanosecond.
           {ArrivalFormat::kQueries,
            R"({"version": {"timestamp": 3}, "queries": [
                {"id": 0, "timestamp": 0.0},
                {"id": 1, "options": {"timestamp": 8}, "timestamp": 0.023056019997596742}]})",
            {Duration{0}, Duration{23'056'019}}}}) {
    SCOPED_TRACE(file.text);
    const auto arrivals = must(parse_arrivals(file.text, file.format, "trace"));
    EXPECT_EQ(arrivals.offsets, file.offsets);
    EXPECT_TRUE(arrivals.counters.empty());
    EXPECT_TRUE(arrivals.lengths.empty());
  }
}

/// "prompt/output" of each request, with hashes behind if there are some.
std::string lengths_of(const Result<RecordedArrivals>& arrivals) {
  if (!arrivals) return arrivals.error().text();
  std::string text;
  for (const RecordedLength& length : arrivals->lengths) {
    text += std::to_string(length.prompt_tokens) + "/" + std::to_string(length.output_tokens);
    for (const std::uint64_t hash : length.hashes) text += " #" + std::to_string(hash);
    text += ";";
  }
  return text;
}

Result<RecordedArrivals> with_lengths(ArrivalFormat format, const std::string& text) {
  return parse_arrivals(text, format, "t", Lengths::kRead);
}

TEST(ArrivalFile, LengthsOfEachFormatAreReadWhereTheyAreAskedFor) {
  for (const auto& [format, text, lengths] :
       {std::tuple{ArrivalFormat::kAzure,
                   "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n",
                   "374/44;"},
        {ArrivalFormat::kSplitwise,
         "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,396.0,109\n", "396/109;"},
        // They stay with their request where times are sorted.
        {ArrivalFormat::kSplitwise,
         "arrived_at,num_prefill_tokens,num_decode_tokens\n3,30,1\n1,10,1\n3,31,1\n",
         "10/1;30/1;31/1;"},
        {ArrivalFormat::kServegen,
         "request_id,timestamp,input_tokens,output_tokens\n0,2.25,1204,310\n", "1204/310;"},
        {ArrivalFormat::kMooncake,
         "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, "
         "\"hash_ids\": [0, 14]}\n",
         "700/5 #0 #14;"},
        {ArrivalFormat::kBundle,
         "{\"arrival_time\": 3, \"input_toks\": 7, \"output_toks\": 8, "
         "\"more\": {\"input_toks\": 9}}\n",
         "7/8;"}}) {
    EXPECT_EQ(lengths_of(with_lengths(format, text)), lengths);
  }
}

TEST(ArrivalFile, AnEmptyOutputIsOneTokenAndCounted) {
  const auto arrivals = with_lengths(
      ArrivalFormat::kSplitwise, "arrived_at,num_prefill_tokens,num_decode_tokens\n3,30,0\n");
  EXPECT_EQ(lengths_of(arrivals), "30/1;");
  EXPECT_EQ(arrivals->counters.count("request_lengths_raised"), 1U);
}

TEST(ArrivalFile, LengthsThatAreNotThereAreAFault) {
  EXPECT_THAT(lengths_of(with_lengths(ArrivalFormat::kSplitwise, "arrived_at\n3\n")),
              HasSubstr("expected a column num_prefill_tokens"));
  EXPECT_THAT(lengths_of(with_lengths(ArrivalFormat::kMooncake, "{\"timestamp\": 3}\n")),
              HasSubstr("line 1: found \"\" for \"input_length\""));
  EXPECT_THAT(lengths_of(with_lengths(ArrivalFormat::kGaps, "[1]")),
              HasSubstr("arrival times alone"));
}

TEST(ArrivalFile, WhatIsLeftOutOrMovedIsCounted) {
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (const auto& [format, text, seconds, counter] :
       {std::tuple{ArrivalFormat::kSplitwise, std::string("arrived_at\n3\n1\n2\n"),
                   std::vector{0, 1, 2}, "arrivals_reordered"},  // 1 lies before 3
        {ArrivalFormat::kSplitwise, "arrived_at\n1\noops\n2\n", {0, 1}, "arrival_lines_damaged"},
        {ArrivalFormat::kAzure, azure + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:1", {0},
         "arrival_lines_truncated"},
        // A whole last line needs no end.
        {ArrivalFormat::kAzure, azure + "2023-11-16 18:15:46.6805900,374,44", {0}, ""}}) {
    const auto arrivals = must(parse_arrivals(text, format, "t"));
    std::vector<Duration> offsets;
    for (const int second : seconds) offsets.push_back(std::chrono::seconds{second});
    EXPECT_EQ(arrivals.offsets, offsets) << text;
    if (std::string_view(counter).empty()) {
      EXPECT_TRUE(arrivals.counters.empty());
    } else {
      EXPECT_EQ(arrivals.counters.count(counter), 1U);
    }
  }
}

TEST(ArrivalFile, MoreThanAHundredthDamagedIsAFaultWithTheFirstLine) {
  std::string lines = "arrived_at\n";
  for (int i = 0; i < 250; ++i) lines += std::to_string(i) + "\n";
  const std::string two = lines + "a\nb\n";
  EXPECT_TRUE(parse_arrivals(two, ArrivalFormat::kSplitwise, "t"));  // 2 of 250
  const auto three = error_of(parse_arrivals(two + "c\n", ArrivalFormat::kSplitwise, "t"));
  EXPECT_EQ(three.place, "line 252");
  EXPECT_THAT(three.message, HasSubstr("found \"a\""));
  EXPECT_THAT(three.message, HasSubstr("3 damaged lines"));
}

struct Bad {
  const char* name;
  ArrivalFormat format;
  const char* text;
  const char* message;
};

class BadArrivalFile : public testing::TestWithParam<Bad> {};

TEST_P(BadArrivalFile, IsAFault) {
  const auto arrivals = error_of(parse_arrivals(GetParam().text, GetParam().format, "input"));
  EXPECT_THAT(arrivals.text(), HasSubstr(GetParam().message));
  EXPECT_EQ(arrivals.file, "input");
}

const Bad kBad[] = {
    {"Empty", ArrivalFormat::kAzure, "", "no arrivals"},
    {"HeaderOnly", ArrivalFormat::kAzure, "TIMESTAMP,a,b\n", "no arrivals"},
    {"OtherHeader", ArrivalFormat::kAzure, "arrived_at,a\n", "line 1: found the columns"},
    {"NothingGood", ArrivalFormat::kAzure, "TIMESTAMP\nx\n", "line 2: found \"x\""},
    {"TooFewCells", ArrivalFormat::kAzure, "TIMESTAMP,a\n2023-11-16 18:15:46\n", "found 1 cells"},
    {"CutOffOnly", ArrivalFormat::kMooncake, "{\"timestamp\": 3", "line 1: not a JSON object"},
    {"NoTimestamp", ArrivalFormat::kMooncake, "{\"time\": 3}\n", "no number \"timestamp\""},
    {"TextTimestamp", ArrivalFormat::kMooncake, "{\"timestamp\": \"3\"}\n", "no number"},
    {"NegativeTimestamp", ArrivalFormat::kMooncake, "{\"timestamp\": -3}\n", "found \"-3\""},
    {"NotJson", ArrivalFormat::kGaps, "[0.1, 0.2", "byte "},
    {"NotAList", ArrivalFormat::kGaps, "{\"a\": 1}", "expected one list"},
    {"LoneGap", ArrivalFormat::kGaps, "1", "lone value"},
    {"NestedGaps", ArrivalFormat::kGaps, "[1, [2]]", "/1: found a list"},
    {"NegativeGap", ArrivalFormat::kGaps, "[1, -2]", "/1: found \"-2\""},
    {"TextGap", ArrivalFormat::kGaps, "[\"1\"]", "/0: found"},
    {"NullGap", ArrivalFormat::kGaps, "[null]", "/0: found \"null\""},
    {"NoGaps", ArrivalFormat::kGaps, "[]", "no arrivals"},
    {"GapsBeyondTime", ArrivalFormat::kGaps, "[3e9, 3e9, 3e9, 3e9]", "292 years"},
    {"HugeNumber", ArrivalFormat::kGaps, "[1e999]", "byte "},
    {"QueryWithoutTime", ArrivalFormat::kQueries,
     "{\"queries\": [{\"timestamp\": 1}, {\"id\": 2}]}", "/queries/1"},
    {"NoQueries", ArrivalFormat::kQueries, "{\"timestamp\": 1}", "no arrivals"},
};

INSTANTIATE_TEST_SUITE_P(All, BadArrivalFile, testing::ValuesIn(kBad),
                         [](const auto& bad) { return std::string(bad.param.name); });

class ArrivalFileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "bubblesim_arrivals_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write_packed(const std::string& text) const {
    gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }

  std::string path_;
};

TEST_F(ArrivalFileOnDisk, CompressedAndPlainFilesReadAlike) {
  const std::string text = "arrived_at\n0.5\n0.75\n";
  std::ofstream(path_) << text;
  const auto plain = read_arrivals(path_, ArrivalFormat::kSplitwise);
  write_packed(text);
  const auto packed = read_arrivals(path_, ArrivalFormat::kSplitwise);
  ASSERT_TRUE(plain && packed);
  EXPECT_EQ(plain->offsets, packed->offsets);
}

TEST_F(ArrivalFileOnDisk, DamagedCompressionIsAFault) {
  std::string text = "arrived_at\n";
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919 % 100003) + "\n";
  write_packed(text);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  EXPECT_THAT(error_of(read_arrivals(path_, ArrivalFormat::kSplitwise)).message,
              HasSubstr("compression is damaged"));
}

TEST_F(ArrivalFileOnDisk, WhatIsNotThereAndFoldersAreFaults) {
  EXPECT_FALSE(read_arrivals(path_, ArrivalFormat::kAzure));
  EXPECT_FALSE(read_arrivals(testing::TempDir(), ArrivalFormat::kAzure));
}

}  // namespace
}  // namespace bubblesim::workload
