// What is written is what is read: every field, in the order written.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/traces/format/sample_job.hpp"

namespace bubblesim::traces::format {
namespace {

using namespace testing;

JobTrace round_trip(const JobTrace& job, const WriterOptions& options = {}) {
  auto outcome = read_job_bytes(file_of(job, options), "test.btr");
  EXPECT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->counters), "");
  return std::move(outcome->job);
}

TEST(BtrRoundTrip, every_field_of_every_record_returns) {
  const JobTrace job = sample_job();
  EXPECT_EQ(text_of(round_trip(job)), text_of(job));
}

TEST(BtrRoundTrip, chunk_size_and_compression_level_do_not_change_what_is_read) {
  const JobTrace job = sample_job();
  for (const std::uint32_t records : {1U, 2U, 3U, 7U, 1000U}) {
    EXPECT_EQ(text_of(round_trip(job, {.chunk_records = records})), text_of(job)) << records;
  }
  EXPECT_EQ(text_of(round_trip(job, {.compression_level = 19})), text_of(job));
  EXPECT_EQ(text_of(round_trip(job, {.chunk_bytes = 1})), text_of(job));
}

TEST(BtrRoundTrip, records_out_of_time_order_keep_their_order) {
  JobTrace job;
  job.ranks.resize(1);
  RankTrace& trace = job.ranks[0];
  trace.names.intern("call");
  trace.threads.resize(1);
  for (const std::int64_t start : {30, 10, 20, 10}) {
    trace.host_calls.push_back({.start = TraceTime{Duration{start}}});
  }
  const JobTrace back = round_trip(job);
  ASSERT_EQ(back.ranks[0].host_calls.size(), 4U);
  EXPECT_EQ(to_ns(back.ranks[0].host_calls[0].start), 30);
  EXPECT_EQ(to_ns(back.ranks[0].host_calls[1].start), 10);
  EXPECT_EQ(to_ns(back.ranks[0].host_calls[2].start), 20);
  EXPECT_EQ(to_ns(back.ranks[0].host_calls[3].start), 10);
}

TEST(BtrRoundTrip, a_job_without_ranks_and_a_rank_without_records_return) {
  EXPECT_EQ(text_of(round_trip(JobTrace{})), "");
  JobTrace job;
  job.ranks.resize(1);
  job.ranks[0].rank = 4'294'967'294;
  EXPECT_EQ(text_of(round_trip(job)), text_of(job));
}

TEST(BtrRoundTrip, copies_need_no_shape_table) {
  JobTrace job;
  job.ranks.resize(1);
  job.ranks[0].names.intern("Memcpy HtoD");
  job.ranks[0].streams.resize(1);
  job.ranks[0].device_ops = {{.kind = DeviceOpKind::kCopy, .bytes = 4096}};
  EXPECT_EQ(text_of(round_trip(job)), text_of(job));
}

TEST(BtrRoundTrip, a_name_of_a_million_characters_and_names_with_any_byte_return) {
  JobTrace job;
  job.ranks.resize(1);
  RankTrace& trace = job.ranks[0];
  trace.names.intern("before");
  trace.names.intern(std::string(1'000'000, 'x'));
  trace.names.intern(std::string("\0\xFF\n\"", 4));
  trace.names.intern("after");
  EXPECT_EQ(text_of(round_trip(job)), text_of(job));
}

TEST(BtrRoundTrip, the_same_job_gives_the_same_bytes) {
  EXPECT_EQ(file_of(sample_job()), file_of(sample_job()));
  const auto once = read_job_bytes(file_of(sample_job()), "test.btr");
  ASSERT_TRUE(once);
  EXPECT_EQ(file_of(once->job), file_of(sample_job()));
}

TEST(BtrRoundTrip, a_job_too_regular_for_the_expansion_limit_is_still_read) {
  JobTrace job;
  job.ranks.resize(1);
  RankTrace& trace = job.ranks[0];
  trace.names.intern("call");
  trace.threads.resize(1);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    trace.host_calls.push_back({.start = TraceTime{Duration{i * 10}}, .duration = Duration{5}});
  }
  const WriterOptions options{.chunk_records = 100'000};
  const Bytes bytes = file_of(job, options);
  EXPECT_LT(bytes.size(), 40'000U);  // 100 000 calls of 8 to 10 bytes, at 32 : 1 are 31 KB
  EXPECT_EQ(text_of(round_trip(job, options)), text_of(job));
}

}  // namespace
}  // namespace bubblesim::traces::format
