// The bytes of the format, what of them is refused, and what is passed over.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <string>

#include "sim/base/random.hpp"
#include "tests/fault.hpp"
#include "tests/unit/traces/format/sample_job.hpp"
#include "tests/unit/traces/format/valid_ids.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/varint.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces::format {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::uint16_t number(ChunkKind kind) { return static_cast<std::uint16_t>(kind); }

/// An end chunk that promises nothing.
Bytes end_chunk(std::uint32_t index) {
  return chunk_of({.kind = number(ChunkKind::kEnd), .index = index}, {3, 0, 0, 0});
}

TEST(BtrLayout, the_file_header_is_the_one_of_the_specification) {
  const auto bytes = encode_file_header();
  const Bytes expected{0x89, 'B', 'T', 'R', 0x0D, 0x0A, 0x1A, 0x0A, 1, 0, 5, 0};
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + 12), expected);
}

TEST(BtrLayout, the_chunk_header_is_the_one_of_the_specification) {
  const auto bytes = encode_chunk_header({.kind = 0x0102, .codec = 3, .rank = 4, .records = 5,
                                          .index = 6, .stored_bytes = 7, .raw_bytes = 8,
                                          .payload_crc = 9, .first_record = 0x0A0B});
  const Bytes expected{0xC5, 'B', 'C', 'K', 2, 1, 3, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0,
                       7,    0,   0,   0,   8, 0, 0, 0, 9, 0, 0, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + 40), expected);
}

TEST(BtrLayout, varints_of_every_length_return) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t value :
         {(std::uint64_t{1} << bits) - 1, std::uint64_t{1} << bits, ~std::uint64_t{0} >> bits}) {
      std::uint8_t coded[kMaxVarintBytes + kVarintPadding] = {};
      const std::uint8_t* const end = write_varint(coded, value);
      std::uint64_t back = 0;
      EXPECT_EQ(read_varint(coded, back), end);
      EXPECT_EQ(back, value);
    }
  }
}

TEST(BtrLayout, a_varint_beyond_64_bits_is_refused) {
  Bytes coded(kVarintPadding + kMaxVarintBytes, 0xFF);
  std::uint64_t value = 0;
  EXPECT_EQ(read_varint(coded.data(), value), nullptr);
  coded[9] = 2;  // bit 64
  EXPECT_EQ(read_varint(coded.data(), value), nullptr);
  coded[9] = 1;  // bit 63
  EXPECT_EQ(read_varint(coded.data(), value), coded.data() + 10);
}

/// `values` in a row, with what may follow a column.
Bytes coded_row(const std::vector<std::uint64_t>& values) {
  Bytes coded(values.size() * kMaxVarintBytes + kVarintPadding, 0x80);
  std::uint8_t* place = coded.data();
  for (const std::uint64_t value : values) place = write_varint(place, value);
  coded.resize(static_cast<std::size_t>(place - coded.data()) + kVarintPadding);
  return coded;
}

TEST(BtrLayout, varints_in_a_row_return_whatever_their_lengths) {
  RandomStream random(3, "layout_test");
  for (const double mean_bits : {4.0, 9.0, 20.0, 64.0}) {
    for (std::size_t count = 0; count < 300; ++count) {
      std::vector<std::uint64_t> values(count);
      for (auto& value : values) {
        const auto bits = static_cast<unsigned>(random.uniform() * mean_bits);
        value = (~std::uint64_t{0} >> (63 - bits)) - (random.uniform() < 0.5 ? 1 : 0);
      }
      const Bytes coded = coded_row(values);
      const std::uint8_t* const end = coded.data() + coded.size() - kVarintPadding;
      std::vector<std::uint64_t> back(count);
      const auto take = [&back](std::size_t i, std::uint64_t value) { back[i] = value; };
      EXPECT_EQ(read_varints(coded.data(), end, count, take), end);
      EXPECT_EQ(back, values);
      EXPECT_EQ(read_varints(coded.data(), end, count + 1, [](std::size_t, std::uint64_t) {}),
                nullptr);
    }
  }
}

TEST(BtrLayout, a_row_of_varints_stops_at_one_beyond_64_bits) {
  const auto nothing = [](std::size_t, std::uint64_t) {};
  for (std::size_t place = 0; place < 200; ++place) {
    Bytes coded(place, 1);
    coded.insert(coded.end(), 9, 0xFF);
    coded.push_back(2);
    coded.insert(coded.end(), 100 + kVarintPadding, 1);
    const std::uint8_t* const end = coded.data() + coded.size() - kVarintPadding;
    EXPECT_EQ(read_varints(coded.data(), end, place + 1, nothing), nullptr);
    EXPECT_EQ(read_varints(coded.data(), end, place, nothing), coded.data() + place);
    coded[place + 9] = 1;
    EXPECT_EQ(read_varints(coded.data(), end, place + 101, nothing), end);
  }
  const Bytes endless(200 + kVarintPadding, 0x80);
  EXPECT_EQ(read_varints(endless.data(), endless.data() + 200, 1, nothing), nullptr);
}

TEST(BtrLayout, zigzag_numbers_small_magnitudes_first) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::min()), ~std::uint64_t{0});
  EXPECT_EQ(unzigzag(zigzag(-123'456)), -123'456);
}

TEST(BtrLayout, another_kind_of_file_is_refused_with_what_was_found) {
  const std::string json = "{\"traceEvents\": [1, 2]}";
  const auto outcome = error_of(read_job_bytes(Bytes(json.begin(), json.end()), "t.json"));
  EXPECT_EQ(outcome.file, "t.json");
  EXPECT_THAT(outcome.message, HasSubstr("found a file that starts with \"{\"traceE\""));
  EXPECT_THAT(outcome.message, HasSubstr("expected \"\\x89BTR"));
}

TEST(BtrLayout, a_file_shorter_than_a_header_is_refused) {
  EXPECT_THAT(read_job_bytes({}, "t.btr").error().message, HasSubstr("found 0 bytes"));
  EXPECT_FALSE(read_job_bytes(Bytes{0x89, 'B', 'T', 'R'}, "t.btr"));
}

TEST(BtrLayout, a_path_that_is_missing_or_a_folder_is_refused) {
  EXPECT_THAT(read_job("/nowhere/t.btr").error().text(), HasSubstr("/nowhere/t.btr: cannot open"));
  EXPECT_THAT(read_job("/").error().message, HasSubstr("not a regular file"));
}

TEST(BtrLayout, another_major_version_is_refused_with_both_versions) {
  Bytes bytes = file_of(sample_job());
  bytes[8] = 2;
  bytes[10] = 7;
  const std::uint32_t crc = crc32_of(std::span(bytes).first(12));
  for (unsigned i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  EXPECT_EQ(error_of(read_job_bytes(bytes, "t.btr")).message,
            "found .btr version 2.7, this program supports 1.x");
}

TEST(BtrLayout, a_later_minor_version_is_read) {
  Bytes bytes = file_of(sample_job());
  bytes[10] = 9;
  const std::uint32_t crc = crc32_of(std::span(bytes).first(12));
  for (unsigned i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  const auto outcome = must(read_job_bytes(bytes, "t.btr"));
  EXPECT_EQ(text_of(outcome.counters), "");
}

TEST(BtrLayout, unknown_chunk_kinds_and_codecs_are_passed_over_and_counted) {
  const Bytes future = chunk_of({.kind = 999, .rank = 1, .records = 5, .index = 0}, {1, 2, 3});
  const Bytes coded = chunk_of(
      {.kind = number(ChunkKind::kMemory), .codec = 9, .rank = 0, .records = 1, .index = 1}, {4});
  const Bytes memory = chunk_of(
      {.kind = number(ChunkKind::kMemory), .rank = 0, .records = 1, .index = 2, .first_record = 1},
      {3, 1, 1, 1, 20, 40, 60});
  const auto outcome =
      must(read_job_bytes(file_of_chunks({future, coded, memory, end_chunk(3)}), "t.btr"));
  EXPECT_EQ(outcome.counters.count("btr_chunks_unknown"), 2U);
  EXPECT_EQ(outcome.counters.count("btr_chunks_lost"), 0U);
  EXPECT_EQ(outcome.counters.count("btr_records_lost"), 1U);  // the memory sample in codec 9
  ASSERT_EQ(outcome.job.ranks.size(), 1U);
  ASSERT_EQ(outcome.job.ranks[0].memory.size(), 1U);
  EXPECT_EQ(to_ns(outcome.job.ranks[0].memory[0].at), 10);  // zigzag: 20, 40, 60 are 10, 20, 30
  EXPECT_EQ(outcome.job.ranks[0].memory[0].allocated_bytes, 20U);
  EXPECT_EQ(outcome.job.ranks[0].memory[0].reserved_bytes, 30U);
}

TEST(BtrLayout, columns_beyond_the_known_ones_are_passed_over) {
  const Bytes memory =
      chunk_of({.kind = number(ChunkKind::kMemory), .rank = 0, .records = 1},
               {4, 1, 1, 1, 2, 20, 40, 60, 99, 98});
  const auto outcome = must(read_job_bytes(file_of_chunks({memory, end_chunk(1)}), "t.btr"));
  EXPECT_EQ(outcome.job.ranks.at(0).memory.size(), 1U);
}

TEST(BtrLayout, a_column_that_an_earlier_minor_version_lacks_reads_as_zero) {
  // Streams of version 1.0 have two columns: system id 7, priority 0; the device is new in 1.1.
  const Bytes stream = chunk_of({.kind = number(ChunkKind::kStreams), .rank = 0, .records = 1},
                                {2, 1, 1, 7, 0});
  const auto outcome = must(read_job_bytes(file_of_chunks({stream, end_chunk(1)}), "t.btr"));
  EXPECT_EQ(outcome.counters.count("btr_chunks_malformed"), 0U);
  ASSERT_EQ(outcome.job.ranks.at(0).streams.size(), 1U);
  EXPECT_EQ(outcome.job.ranks[0].streams[0].system_id, 7U);
  EXPECT_EQ(outcome.job.ranks[0].streams[0].device, 0U);
}

TEST(BtrLayout, one_block_of_one_thread_without_registers_was_an_unknown_shape_before_1_2) {
  // Two shapes, column by column: {1,1,1} x {1,1,1} with 0 registers, and the same with 16.
  const Bytes shapes = chunk_of({.kind = number(ChunkKind::kShapes), .rank = 0, .records = 2},
                                {8, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1,
                                 1, 1, 1, 1, 1, 1, 0, 16, 0, 0});
  Bytes bytes = file_of_chunks({shapes, end_chunk(1)});
  for (const std::uint8_t minor : {std::uint8_t{1}, std::uint8_t{2}}) {
    bytes[10] = minor;
    const std::uint32_t crc = crc32_of(std::span(bytes).first(12));
    for (unsigned i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
    const auto outcome = must(read_job_bytes(bytes, "t.btr"));
    const auto& read = outcome.job.ranks.at(0).shapes;
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(is_known(read[ShapeId{0}]), minor == 2);
    EXPECT_TRUE(is_known(read[ShapeId{1}]));
  }
}

TEST(BtrLayout, an_unknown_enumerator_reads_as_other_and_is_counted) {
  // One host call: 8 columns of one byte; kind 77 is none of this version.
  const Bytes call = chunk_of({.kind = number(ChunkKind::kHostCalls), .rank = 0, .records = 1},
                              {8, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 77, 0, 0});
  const auto outcome = must(read_job_bytes(file_of_chunks({call, end_chunk(1)}), "t.btr"));
  EXPECT_EQ(outcome.job.ranks.at(0).host_calls.at(0).kind, HostCallKind::kOther);
  EXPECT_EQ(outcome.counters.count("btr_enums_unknown"), 1U);
}

TEST(BtrLayout, sizes_that_the_file_cannot_justify_are_no_chunk_header) {
  const auto accepted = [](std::uint32_t stored, std::uint32_t raw) {
    return decode_chunk_header(
               encode_chunk_header({.kind = 7, .stored_bytes = stored, .raw_bytes = raw}))
        .has_value();
  };
  EXPECT_TRUE(accepted(100, 100));
  EXPECT_TRUE(accepted(100, 3'200));                   // 32 : 1
  EXPECT_FALSE(accepted(100, 3'232));                  // 32.32 : 1: more than 32 times
  EXPECT_FALSE(accepted(0, 0));
  EXPECT_FALSE(accepted(101, 100));                    // larger than what it holds
  EXPECT_FALSE(accepted(1U << 26U, (1U << 26U) + 1));  // beyond 64 MiB
}

TEST(BtrLayout, claimed_records_that_the_payload_cannot_hold_are_refused_before_allocating) {
  // 4 294 967 295 host calls would take 200 GiB.
  for (std::uint16_t kind = 1; kind <= 13; ++kind) {
    const Bytes chunk = chunk_of({.kind = kind, .rank = 0, .records = 0xFFFFFFFF},
                                 {12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
                                  0, 0, 0, 0});
    const auto outcome = must(read_job_bytes(file_of_chunks({chunk, end_chunk(1)}), "t.btr"));
    EXPECT_EQ(outcome.counters.count("btr_chunks_malformed"), 1U) << kind;
    EXPECT_TRUE(outcome.job.ranks.empty()) << kind;
  }
}

TEST(BtrLayout, lengths_of_texts_and_lists_that_exceed_their_bytes_are_refused) {
  const Bytes name = chunk_of({.kind = number(ChunkKind::kNames), .rank = 0, .records = 1},
                              {2, 5, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 'x'});
  const Bytes peers = chunk_of({.kind = number(ChunkKind::kCollectives), .rank = 0, .records = 1,
                                .index = 1},
                               {8, 1, 1, 1, 1, 5, 1, 1, 1, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
                                0x0F, 1, 0, 0});
  const auto outcome = must(read_job_bytes(file_of_chunks({name, peers, end_chunk(2)}), "t.btr"));
  EXPECT_EQ(outcome.counters.count("btr_chunks_malformed"), 2U);
  EXPECT_EQ(outcome.counters.count("btr_records_lost"), 2U);
}

TEST(BtrLayout, a_number_that_its_field_cannot_hold_makes_the_chunk_malformed) {
  // One stream: system id 7, priority 2^33 zigzagged, which is no 32-bit integer.
  const Bytes stream = chunk_of({.kind = number(ChunkKind::kStreams), .rank = 0, .records = 1},
                                {2, 1, 5, 7, 0x80, 0x80, 0x80, 0x80, 0x40});
  const auto outcome = must(read_job_bytes(file_of_chunks({stream, end_chunk(1)}), "t.btr"));
  EXPECT_EQ(outcome.counters.count("btr_chunks_malformed"), 1U);
}

// A damaged file gives every whole chunk, says what is missing, and nothing points nowhere.
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
    const auto outcome = must(read_job_bytes(std::span(whole).first(cut), "cut.btr"));
    EXPECT_GE(device_ops_of(outcome.job), before);
    before = device_ops_of(outcome.job);
    EXPECT_EQ(outcome.counters.count("btr_end_missing"), percent == 100 ? 0U : 1U);
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
  const auto outcome = must(read_job_bytes(file, "t.btr"));
  // Rank 0 had operations 0 to 9 in chunks of 4, 4 and 2; 4 to 7 are lost.
  const auto& ops = outcome.job.ranks.at(0).device_ops;
  ASSERT_EQ(ops.size(), 6U);
  EXPECT_EQ(ops[3].correlation, 503U);
  EXPECT_EQ(ops[4].correlation, 508U);
  EXPECT_EQ(outcome.counters.count("btr_chunks_lost"), 1U);
  EXPECT_EQ(outcome.counters.count("btr_records_lost"), 4U);
  // Edge 9 -> 1 follows its operation to place 5; edge 0 -> 3 stays.
  const auto& edges = outcome.job.ranks[0].edges;
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
  const auto outcome = must(read_job_bytes(file, "t.btr"));
  EXPECT_EQ(text_of(outcome.job), text_of(sample_job()));
  EXPECT_EQ(outcome.counters.count("btr_bytes_lost"), 7U);
  EXPECT_EQ(outcome.counters.count("btr_chunks_lost"), 0U);
}

TEST(BtrDamage, a_chunk_that_stands_twice_is_read_once) {
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const ScannedChunk chunk = chunks_of(whole)[6];
  const Bytes copy(whole.begin() + static_cast<long>(chunk.offset),
                   whole.begin() + static_cast<long>(end_of(chunk)));
  Bytes file = whole;
  file.insert(file.begin() + static_cast<long>(end_of(chunk)), copy.begin(), copy.end());
  const auto outcome = must(read_job_bytes(file, "t.btr"));
  EXPECT_EQ(text_of(outcome.job), text_of(sample_job()));
  EXPECT_EQ(outcome.counters.count("btr_chunks_malformed"), 1U);
  EXPECT_EQ(outcome.counters.count("btr_chunks_lost"), 0U);
}

TEST(BtrDamage, bytes_after_the_end_are_ignored_and_counted) {
  Bytes file = file_of(sample_job());
  file.resize(file.size() + 100);
  const auto outcome = must(read_job_bytes(file, "t.btr"));
  EXPECT_EQ(text_of(outcome.job), text_of(sample_job()));
  EXPECT_EQ(outcome.counters.count("btr_bytes_after_end"), 100U);
}

TEST(BtrDamage, a_lost_run_of_a_file_is_found_over_windows_of_the_reader) {
  // 3 MiB of zeros in the middle: longer than the reader's window, resumed behind it.
  const std::string path = temporary_path();
  const Bytes whole = file_of(sample_job(), kSmallChunks);
  const auto chunks = chunks_of(whole);
  Bytes file = whole;
  file.insert(file.begin() + static_cast<long>(chunks[5].offset), 3U << 20U, 0);
  write_file(path, file);
  const auto outcome = must(read_job(path));
  EXPECT_EQ(text_of(outcome.job), text_of(sample_job()));
  EXPECT_EQ(outcome.counters.count("btr_bytes_lost"), 3U << 20U);
}

TEST(BtrDamage, headers_that_all_promise_more_than_the_file_holds_take_linear_time) {
  std::vector<Bytes> headers;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    headers.push_back(chunk_of(
        {.kind = 7, .rank = i, .index = i, .stored_bytes = 1U << 26U, .raw_bytes = 1U << 26U}, {}));
  }
  const auto outcome = must(read_job_bytes(file_of_chunks(headers), "t.btr"));
  EXPECT_EQ(outcome.counters.count("btr_chunks_lost"), 20'000U);
  EXPECT_EQ(outcome.counters.count("btr_bytes_lost"), 20'000U * 44U);
}

}  // namespace
}  // namespace bubblesim::traces::format
