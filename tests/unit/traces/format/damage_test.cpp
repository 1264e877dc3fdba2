// A damaged file gives every whole chunk, says what is missing, and nothing points nowhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/unit/traces/format/sample_job.hpp"
#include "tests/unit/traces/format/valid_ids.hpp"

namespace bubblesim::traces::format {
namespace {

using namespace testing;

constexpr WriterOptions kSmallChunks{.chunk_records = 4};

std::uint64_t end_of(const ScannedChunk& chunk) {
  return chunk.offset + kChunkHeaderBytes + chunk.header.stored_bytes;
}

std::size_t device_ops_of(const JobTrace& job) {
  std::size_t sum = 0;
  for (const RankTrace& trace : job.ranks) sum += trace.device_ops.size();
  return sum;
}

TEST(BtrDamage, a_cut_at_every_byte_leaves_every_chunk_before_it) {
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const auto chunks = chunks_of(whole);
  for (std::size_t cut = kFileHeaderBytes; cut < whole.size(); ++cut) {
    const auto outcome = read_job_bytes(std::span(whole).first(cut), "cut.btr");
    ASSERT_TRUE(outcome) << cut;
    std::size_t ops = 0;
    std::uint64_t last_end = kFileHeaderBytes;
    for (const ScannedChunk& chunk : chunks) {
      if (end_of(chunk) > cut) break;
      last_end = end_of(chunk);
      ops += kind_of(chunk) == "device_ops" ? chunk.header.records : 0;
    }
    EXPECT_EQ(device_ops_of(outcome->job), ops) << cut;
    EXPECT_EQ(outcome->counters.count("btr_end_missing"), 1U) << cut;
    EXPECT_EQ(outcome->counters.count("btr_bytes_lost"), cut - last_end) << cut;
    EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), cut == last_end ? 0U : 1U) << cut;
    EXPECT_TRUE(ids_are_valid(outcome->job)) << cut;
  }
}

TEST(BtrDamage, a_larger_file_cut_at_every_hundredth_is_read_up_to_the_cut) {
  JobTrace job = sample_job();
  while (job.ranks[0].device_ops.size() < 20'000) {
    job.ranks[0].device_ops.push_back(job.ranks[0].device_ops[job.ranks[0].device_ops.size() % 7]);
  }
  const Bytes whole = file_of(job, {.chunk_records = 100});
  std::size_t before = 0;
  for (std::size_t percent = 1; percent <= 100; ++percent) {
    const std::size_t cut = std::max(kFileHeaderBytes, whole.size() * percent / 100);
    const auto outcome = read_job_bytes(std::span(whole).first(cut), "cut.btr");
    ASSERT_TRUE(outcome);
    EXPECT_GE(device_ops_of(outcome->job), before);
    before = device_ops_of(outcome->job);
    EXPECT_EQ(outcome->counters.count("btr_end_missing"), percent == 100 ? 0U : 1U);
  }
  EXPECT_EQ(before, 20'001U);
}

TEST(BtrDamage, every_flipped_bit_is_noticed_and_costs_one_chunk_at_most) {
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto outcome = read_job_bytes(flipped, "flip.btr");
    if (!outcome) {
      EXPECT_LT(bit / 8, kFileMagic.size());
      continue;
    }
    EXPECT_FALSE(outcome->counters.empty()) << "bit " << bit;
    EXPECT_LE(outcome->counters.count("btr_chunks_lost"), 1U) << "bit " << bit;
    EXPECT_TRUE(ids_are_valid(outcome->job)) << "bit " << bit;
  }
}

TEST(BtrDamage, records_of_a_lost_chunk_are_counted_and_the_rest_is_read) {
  Bytes file = file_of(sample_job(), kSmallChunks);
  for (const ScannedChunk& chunk : chunks_of(file)) {
    if (kind_of(chunk) != "device_ops" || chunk.header.first_record != 4) continue;
    file[end_of(chunk) - 1] ^= 1U;
  }
  const auto outcome = read_job_bytes(file, "t.btr");
  ASSERT_TRUE(outcome);
  // Rank 0 had operations 0 to 9 in chunks of 4, 4 and 2; 4 to 7 are lost.
  const auto& ops = outcome->job.ranks.at(0).device_ops;
  ASSERT_EQ(ops.size(), 6U);
  EXPECT_EQ(ops[3].correlation, 503U);
  EXPECT_EQ(ops[4].correlation, 508U);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 1U);
  EXPECT_EQ(outcome->counters.count("btr_records_lost"), 4U);
  // Edge 9 -> 1 follows its operation to place 5; edge 0 -> 3 stays.
  const auto& edges = outcome->job.ranks[0].edges;
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(edges[1].before.value, 5U);
  EXPECT_EQ(edges[1].after.value, 1U);
}

/// sample_job without the first chunk of a kind of rank 0, its bytes taken out of the file.
Result<ReadOutcome> read_without(const std::string& kind) {
  Bytes file = file_of(sample_job());
  for (const ScannedChunk& chunk : chunks_of(file)) {
    if (kind_of(chunk) != kind || chunk.header.rank != 0) continue;
    file.erase(file.begin() + static_cast<long>(chunk.offset),
               file.begin() + static_cast<long>(end_of(chunk)));
  }
  auto outcome = read_job_bytes(file, "t.btr");
  EXPECT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 1U);
  EXPECT_TRUE(ids_are_valid(outcome->job));
  return outcome;
}

TEST(BtrDamage, names_of_a_lost_chunk_read_as_lost) {
  const auto outcome = read_without("names");
  const RankTrace& trace = outcome->job.ranks.at(0);
  EXPECT_EQ(trace.names.size(), 1U);
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "(lost)");
  // 12 calls, 10 operations, 2 collectives, 2 markers
  EXPECT_EQ(outcome->counters.count("btr_names_lost"), 26U);
  EXPECT_EQ(outcome->counters.count("btr_records_lost"), 5U);
}

TEST(BtrDamage, lost_streams_stay_apart) {
  const auto outcome = read_without("streams");
  const RankTrace& trace = outcome->job.ranks.at(0);
  EXPECT_EQ(outcome->counters.count("btr_streams_lost"), 2U);
  EXPECT_EQ(trace.streams.size(), 2U);
  EXPECT_NE(trace.device_ops[0].stream, trace.device_ops[1].stream);
  EXPECT_EQ(trace.device_ops[0].stream, trace.device_ops[2].stream);
}

TEST(BtrDamage, what_refers_to_other_lost_tables_is_counted) {
  EXPECT_EQ(read_without("threads")->counters.count("btr_threads_lost"), 2U);
  // Of operations 0 to 9, kind = i mod 4: kernels 0, 4, 8 and collectives 3, 7 have shapes.
  EXPECT_EQ(read_without("shapes")->counters.count("btr_shapes_lost"), 5U);
  // launch is recorded unless i mod 3 = 2: all but 2, 5, 8.
  EXPECT_EQ(read_without("host_calls")->counters.count("btr_launches_lost"), 7U);
  // Two operations and a note refer to them.
  EXPECT_EQ(read_without("collectives")->counters.count("btr_collectives_lost"), 3U);
  EXPECT_EQ(read_without("device_ops")->counters.count("btr_edges_lost"), 2U);
  EXPECT_EQ(read_without("rank")->counters.count("btr_rank_descriptions_lost"), 1U);
}

TEST(BtrDamage, foreign_bytes_between_chunks_cost_nothing_but_themselves) {
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const auto chunks = chunks_of(whole);
  Bytes file = whole;
  const Bytes noise{0xC5, 'B', 'C', 'K', 1, 2, 3};
  file.insert(file.begin() + static_cast<long>(chunks[3].offset), noise.begin(), noise.end());
  const auto outcome = read_job_bytes(file, "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->job), text_of(sample_job()));
  EXPECT_EQ(outcome->counters.count("btr_bytes_lost"), 7U);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 0U);
}

TEST(BtrDamage, a_chunk_that_stands_twice_is_read_once) {
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const ScannedChunk chunk = chunks_of(whole)[6];
  const Bytes copy(whole.begin() + static_cast<long>(chunk.offset),
                   whole.begin() + static_cast<long>(end_of(chunk)));
  Bytes file = whole;
  file.insert(file.begin() + static_cast<long>(end_of(chunk)), copy.begin(), copy.end());
  const auto outcome = read_job_bytes(file, "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->job), text_of(sample_job()));
  EXPECT_EQ(outcome->counters.count("btr_chunks_malformed"), 1U);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 0U);
}

TEST(BtrDamage, bytes_after_the_end_are_ignored_and_counted) {
  Bytes file = file_of(sample_job());
  file.resize(file.size() + 100);
  const auto outcome = read_job_bytes(file, "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->job), text_of(sample_job()));
  EXPECT_EQ(outcome->counters.count("btr_bytes_after_end"), 100U);
}

TEST(BtrDamage, a_lost_run_of_a_file_is_found_over_windows_of_the_reader) {
  // 3 MiB of zeros in the middle: longer than the reader's window, resumed behind it.
  const std::string path = temporary_path();
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const auto chunks = chunks_of(whole);
  Bytes file = whole;
  file.insert(file.begin() + static_cast<long>(chunks[5].offset), 3U << 20U, 0);
  write_file(path, file);
  const auto outcome = read_job(path);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->job), text_of(sample_job()));
  EXPECT_EQ(outcome->counters.count("btr_bytes_lost"), 3U << 20U);
}

TEST(BtrDamage, headers_that_all_promise_more_than_the_file_holds_take_linear_time) {
  std::vector<Bytes> headers;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    headers.push_back(chunk_of(
        {.kind = 7, .rank = i, .index = i, .stored_bytes = 1U << 26U, .raw_bytes = 1U << 26U}, {}));
  }
  const auto outcome = read_job_bytes(file_of_chunks(headers), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 20'000U);
  EXPECT_EQ(outcome->counters.count("btr_bytes_lost"), 20'000U * 44U);
}

}  // namespace
}  // namespace bubblesim::traces::format
