#include "capture/replay/job_record_file.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace bubblesim::capture {
namespace {

constexpr CounterSpec kLost{"operations_lost", Severity::kLoss, "Operations \"lost\"."};

JobRecord full_record() {
  JobRecord record;
  record.name = "training";
  record.client = ClientId{2};
  record.rank = 5;
  record.began = Duration{-3};
  record.ended = Duration{1'000'000'000'001};
  record.iterations = {Duration{10}, Duration{20}};
  record.passes = {Duration{20}};
  record.pass_requests = {4};
  record.requests = {{Duration{1}, Duration{2}, Duration{3}}};
  record.unfinished = {Duration{8}, Duration{9}};
  record.launches = 12;
  record.gate_time = Duration{500};
  record.held_time = Duration{600};
  record.gate = {12, 3, 1};
  record.operations = {{0, 0, Duration{1}, Duration{2}, Duration{4}, Duration{3}, Duration{8}},
                       {7, 9, Duration{-1}, Duration{5}, Duration{6}, Duration{0}, Duration{7}}};
  record.counters.add(kLost, 11);
  return record;
}

std::string record_with(const std::string& part, const std::string& other) {
  std::string text = job_record_text(full_record());
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " is not in " << text;
  return at == std::string::npos ? text : text.replace(at, part.size(), other);
}

TEST(JobRecordFile, ARecordReadsBackAsItWasWritten) {
  const std::string text = job_record_text(full_record());
  const auto read = parse_job_record(text, "record.json");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(job_record_text(*read), text);
  EXPECT_EQ(read->ended, Duration{1'000'000'000'001});
  EXPECT_EQ(read->iterations, full_record().iterations);
  EXPECT_EQ(read->requests[0].end, Duration{3});
  EXPECT_EQ(read->operations[1].op, 7U);
  EXPECT_EQ(read->operations[1].pass, 9U);
  EXPECT_EQ(read->operations[1].called, Duration{-1});
  EXPECT_EQ(read->operations[0].returned, Duration{3});
  EXPECT_EQ(read->operations[1].noticed, Duration{7});
  EXPECT_EQ(read->gate.ungated, 3U);
  EXPECT_EQ(read->counters.count("operations_lost"), 11U);
}

TEST(JobRecordFile, AnEmptyRecordReadsBackToo) {
  const std::string text = job_record_text({});
  const auto read = parse_job_record(text, "record.json");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(job_record_text(*read), text);
}

TEST(JobRecordFile, AFileIsWrittenAndRead) {
  const std::string path = ::testing::TempDir() + "job_record_file_test.json";
  ASSERT_TRUE(write_job_record(path, full_record()));
  const auto read = read_job_record(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "training");
  std::remove(path.c_str());
}

TEST(JobRecordFile, FaultsNameTheirPlace) {
  const auto place = [](const std::string& text) {
    const auto read = parse_job_record(text, "record.json");
    return read ? std::string("no fault") : read.error().front().place;
  };
  EXPECT_EQ(place(record_with("job record 1", "job record 2")), "/format");
  EXPECT_EQ(place(record_with("\"gate_time_ns\":500", "\"gate_time_ns\":-1")), "/gate_time_ns");
  EXPECT_EQ(place(record_with("\"pass\":[0,9]", "\"pass\":[0]")), "/operations/pass");
  EXPECT_EQ(place(record_with("\"loss\"", "\"lost\"")), "/counters/0/severity");
  EXPECT_EQ(place(record_with("\"ungated\":3", "\"ungated\":\"3\"")), "/gate/ungated");
}

TEST(JobRecordFile, ATruncatedFileIsAFaultWhereverItEnds) {
  const std::string text = job_record_text(full_record());
  for (std::size_t size = 0; size <= text.rfind('}'); ++size) {
    EXPECT_FALSE(parse_job_record(std::string_view(text).substr(0, size), "record.json")) << size;
  }
}

}  // namespace
}  // namespace bubblesim::capture
