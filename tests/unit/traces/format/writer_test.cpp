// The streaming writer: what a capture relies on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/fault.hpp"
#include "tests/unit/traces/format/sample_job.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::traces::format {
namespace {

using namespace testing;
using ::testing::HasSubstr;

HostCall call_at(std::int64_t ns) { return {.start = TraceTime{Duration{ns}}}; }

template <class Record>
void put(TraceWriter& writer, std::uint32_t rank, const Record& record) {
  const auto result = writer.append(RankId{rank}, std::span(&record, 1));
  ASSERT_TRUE(result) << result.error().text();
}

void put_tables(TraceWriter& writer, std::uint32_t rank) {
  put(writer, rank, NameRecord{"call"});
  put(writer, rank, HostThread{1, "main"});
}

TEST(BtrWriter, records_appended_one_by_one_fill_chunks_of_the_given_size) {
  const std::string path = temporary_path();
  auto writer = must(TraceWriter::create(path, {.chunk_records = 10}));
  ASSERT_TRUE(writer.describe(RankId{5}, {.world_size = 8, .device = {}, .provenance = {}}));
  put_tables(writer, 5);
  for (std::int64_t i = 0; i < 25; ++i) put(writer, 5, call_at(i));
  ASSERT_TRUE(writer.finish());
  std::vector<std::uint32_t> sizes;
  const Bytes file = bytes_of_file(path);
  for (const ScannedChunk& chunk : chunks_of(file)) {
    if (kind_of(chunk) == "host_calls") sizes.push_back(chunk.header.records);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{10, 10, 5}));
  const auto outcome = read_job(path);
  EXPECT_EQ(text_of(outcome->counters), "");
  EXPECT_EQ(outcome->job.ranks.at(0).world_size, 8U);
  EXPECT_EQ(to_ns(outcome->job.ranks[0].host_calls.at(24).start), 24);
}

TEST(BtrWriter, without_finish_the_chunks_written_are_readable) {
  const std::string path = temporary_path();
  {
    auto writer = TraceWriter::create(path, {.chunk_records = 10});
    put_tables(*writer, 0);
    for (std::int64_t i = 0; i < 25; ++i) put(*writer, 0, call_at(i));
  }
  const auto outcome = must(read_job(path));
  EXPECT_EQ(outcome.job.ranks.at(0).host_calls.size(), 20U);
  EXPECT_EQ(outcome.job.ranks[0].names.size(), 1U);  // tables go before what needs them
  EXPECT_EQ(outcome.counters.count("btr_end_missing"), 1U);
  EXPECT_EQ(outcome.counters.count("btr_names_lost"), 0U);
}

TEST(BtrWriter, a_flush_makes_everything_so_far_readable_while_the_file_is_open) {
  const std::string path = temporary_path();
  auto writer = TraceWriter::create(path);
  put_tables(*writer, 0);
  put(*writer, 0, call_at(1));
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(read_job(path)->job.ranks.at(0).host_calls.size(), 1U);
  put(*writer, 0, call_at(2));
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(read_job(path)->job.ranks.at(0).host_calls.size(), 2U);
  EXPECT_EQ(read_job(path)->counters.count("btr_end_missing"), 0U);
}

TEST(BtrWriter, tables_may_grow_between_events_and_ranks_may_alternate) {
  const std::string path = temporary_path();
  auto writer = TraceWriter::create(path, {.chunk_records = 2});
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (const std::uint32_t rank : {1U, 0U}) {
      if (round == 0) put(*writer, rank, HostThread{1, "main"});
      put(*writer, rank, NameRecord{"call " + std::to_string(round)});
      HostCall call = call_at(round);
      call.name = NameId{round};
      put(*writer, rank, call);
    }
  }
  ASSERT_TRUE(writer->finish());
  const auto outcome = read_job(path);
  ASSERT_EQ(outcome->job.ranks.size(), 2U);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const RankTrace& trace = outcome->job.ranks[rank];
    EXPECT_EQ(trace.rank, rank);
    ASSERT_EQ(trace.host_calls.size(), 3U);
    EXPECT_EQ(trace.names[trace.host_calls[2].name], "call 2");
  }
}

TEST(BtrWriter, equal_names_appended_twice_become_one_and_records_follow) {
  const std::string path = temporary_path();
  auto writer = TraceWriter::create(path);
  put(*writer, 0, HostThread{1, "main"});
  for (const char* name : {"a", "a", "b"}) put(*writer, 0, NameRecord{name});
  HostCall call;
  call.name = NameId{2};
  put(*writer, 0, call);
  ASSERT_TRUE(writer->finish());
  const auto outcome = read_job(path);
  const RankTrace& trace = outcome->job.ranks.at(0);
  EXPECT_EQ(trace.names.size(), 2U);
  EXPECT_EQ(trace.names[trace.host_calls.at(0).name], "b");
}

TEST(BtrWriter, the_last_description_and_counters_of_a_rank_count) {
  const std::string path = temporary_path();
  auto writer = TraceWriter::create(path);
  for (const std::uint32_t value : {1U, 2U}) {
    CounterSet counters;
    counters.add("dropped", {Severity::kLoss, "dropped records", value});
    ASSERT_TRUE(writer->set_counters(RankId{0}, counters));
    ASSERT_TRUE(writer->describe(RankId{0}, {.world_size = value, .device = {}, .provenance = {}}));
  }
  ASSERT_TRUE(writer->finish());
  const auto outcome = read_job(path);
  EXPECT_EQ(outcome->job.ranks.at(0).world_size, 2U);
  EXPECT_EQ(outcome->job.ranks[0].counters.count("dropped"), 2U);
}

TEST(BtrWriter, a_full_disk_is_an_error_of_this_and_every_later_call) {
  struct stat status {};
  if (::stat("/dev/full", &status) != 0) GTEST_SKIP() << "no /dev/full here";
  const auto writer = error_of(TraceWriter::create("/dev/full"));
  EXPECT_THAT(writer.text(), HasSubstr("/dev/full: cannot write"));
}

TEST(BtrWriter, a_folder_that_does_not_exist_and_chunks_of_no_records_are_refused) {
  EXPECT_THAT(write_job("/nowhere/t.btr", {}).error().message, HasSubstr("cannot create"));
  EXPECT_THAT(TraceWriter::create(temporary_path(), {.chunk_records = 0}).error().message,
              HasSubstr("found chunk_records 0"));
}

TEST(BtrWriter, ranks_out_of_order_or_twice_are_refused) {
  JobTrace job = sample_job();
  job.ranks[1].rank = 0;
  EXPECT_THAT(write_job(temporary_path(), job).error().text(),
              HasSubstr("/ranks/1: found rank 0 after rank 0, expected rising ranks"));
}

TEST(BtrWriter, a_name_that_no_chunk_can_hold_is_refused_and_leaves_no_file) {
  JobTrace job;
  job.ranks.resize(1);
  job.ranks[0].names.intern(std::string((64U << 20U) + 1, 'x'));
  const std::string path = temporary_path();
  std::remove(path.c_str());
  EXPECT_THAT(write_job(path, job).error().message, HasSubstr("exceed the format's 67108864"));
  struct stat status {};
  EXPECT_NE(::stat(path.c_str(), &status), 0);
  EXPECT_NE(::stat((path + ".partial").c_str(), &status), 0);
}

TEST(BtrWriter, a_job_replaces_the_file_only_when_it_is_complete) {
  const std::string path = temporary_path();
  ASSERT_TRUE(write_job(path, sample_job()));
  JobTrace bad;
  bad.ranks.resize(2);
  EXPECT_FALSE(write_job(path, bad));
  EXPECT_EQ(text_of(read_job(path)->job), text_of(sample_job()));
}

TEST(BtrWriter, a_link_under_the_partial_name_is_not_written_through) {
  const std::string path = temporary_path();
  const std::string victim = path + ".victim";
  std::filesystem::remove(victim);
  std::filesystem::copy_file("/etc/passwd", victim);
  std::filesystem::create_symlink(victim, path + ".partial");
  ASSERT_TRUE(write_job(path, sample_job()));
  EXPECT_EQ(std::filesystem::file_size(victim), std::filesystem::file_size("/etc/passwd"));
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(text_of(read_job(path)->job), text_of(sample_job()));
}

TEST(BtrWriter, a_job_is_written_through_a_link) {
  const Bytes expected = file_of(sample_job());
  const std::string target = temporary_path();
  const std::string link = target + ".link";
  std::remove(link.c_str());
  write_file(target, {});
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  ASSERT_TRUE(write_job(link, sample_job()));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(bytes_of_file(target), expected);
  std::remove(link.c_str());
}

// A pipe stands for all that is no regular file: making a device needs root.
TEST(BtrWriter, a_pipe_gets_the_bytes_and_stays_a_pipe) {
  const Bytes expected = file_of(sample_job());
  const std::string pipe = temporary_path() + ".pipe";
  std::remove(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // Open for both, it waits for nobody, and holds the bytes (64 KiB) until they are read.
  const int held = ::open(pipe.c_str(), O_RDWR);
  ASSERT_GE(held, 0);
  ASSERT_LT(expected.size(), std::size_t{1} << 16U);
  ASSERT_TRUE(write_job(pipe, sample_job()));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  Bytes found(expected.size());
  EXPECT_EQ(::read(held, found.data(), found.size()), static_cast<ssize_t>(expected.size()));
  EXPECT_EQ(found, expected);
  ::close(held);
  std::remove(pipe.c_str());
}

// What is written is what is read: every field, in the order written.

JobTrace round_trip(const JobTrace& job, const WriterOptions& options = {}) {
  auto outcome = must(read_job_bytes(file_of(job, options), "test.btr"));
  EXPECT_EQ(text_of(outcome.counters), "");
  return std::move(outcome.job);
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
  const auto once = must(read_job_bytes(file_of(sample_job()), "test.btr"));
  EXPECT_EQ(file_of(once.job), file_of(sample_job()));
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
