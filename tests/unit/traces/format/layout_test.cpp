// The bytes of the format, what of them is refused, and what is passed over.
#include "traces/format/layout.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "sim/base/random.hpp"
#include "tests/fault.hpp"
#include "tests/unit/traces/format/sample_job.hpp"
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
  const auto outcome = read_job_bytes(bytes, "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(text_of(outcome->counters), "");
}

TEST(BtrLayout, unknown_chunk_kinds_and_codecs_are_passed_over_and_counted) {
  const Bytes future = chunk_of({.kind = 999, .rank = 1, .records = 5, .index = 0}, {1, 2, 3});
  const Bytes coded = chunk_of(
      {.kind = number(ChunkKind::kMemory), .codec = 9, .rank = 0, .records = 1, .index = 1}, {4});
  const Bytes memory = chunk_of(
      {.kind = number(ChunkKind::kMemory), .rank = 0, .records = 1, .index = 2, .first_record = 1},
      {3, 1, 1, 1, 20, 40, 60});
  const auto outcome =
      read_job_bytes(file_of_chunks({future, coded, memory, end_chunk(3)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_unknown"), 2U);
  EXPECT_EQ(outcome->counters.count("btr_chunks_lost"), 0U);
  EXPECT_EQ(outcome->counters.count("btr_records_lost"), 1U);  // the memory sample in codec 9
  ASSERT_EQ(outcome->job.ranks.size(), 1U);
  ASSERT_EQ(outcome->job.ranks[0].memory.size(), 1U);
  EXPECT_EQ(to_ns(outcome->job.ranks[0].memory[0].at), 10);  // zigzag: 20, 40, 60 are 10, 20, 30
  EXPECT_EQ(outcome->job.ranks[0].memory[0].allocated_bytes, 20U);
  EXPECT_EQ(outcome->job.ranks[0].memory[0].reserved_bytes, 30U);
}

TEST(BtrLayout, columns_beyond_the_known_ones_are_passed_over) {
  const Bytes memory =
      chunk_of({.kind = number(ChunkKind::kMemory), .rank = 0, .records = 1},
               {4, 1, 1, 1, 2, 20, 40, 60, 99, 98});
  const auto outcome = read_job_bytes(file_of_chunks({memory, end_chunk(1)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->job.ranks.at(0).memory.size(), 1U);
}

TEST(BtrLayout, a_column_that_an_earlier_minor_version_lacks_reads_as_zero) {
  // Streams of version 1.0 have two columns: system id 7, priority 0; the device is new in 1.1.
  const Bytes stream = chunk_of({.kind = number(ChunkKind::kStreams), .rank = 0, .records = 1},
                                {2, 1, 1, 7, 0});
  const auto outcome = read_job_bytes(file_of_chunks({stream, end_chunk(1)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_malformed"), 0U);
  ASSERT_EQ(outcome->job.ranks.at(0).streams.size(), 1U);
  EXPECT_EQ(outcome->job.ranks[0].streams[0].system_id, 7U);
  EXPECT_EQ(outcome->job.ranks[0].streams[0].device, 0U);
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
    const auto outcome = read_job_bytes(bytes, "t.btr");
    ASSERT_TRUE(outcome);
    const auto& read = outcome->job.ranks.at(0).shapes;
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(is_known(read[ShapeId{0}]), minor == 2);
    EXPECT_TRUE(is_known(read[ShapeId{1}]));
  }
}

TEST(BtrLayout, an_unknown_enumerator_reads_as_other_and_is_counted) {
  // One host call: 8 columns of one byte; kind 77 is none of this version.
  const Bytes call = chunk_of({.kind = number(ChunkKind::kHostCalls), .rank = 0, .records = 1},
                              {8, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 77, 0, 0});
  const auto outcome = read_job_bytes(file_of_chunks({call, end_chunk(1)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->job.ranks.at(0).host_calls.at(0).kind, HostCallKind::kOther);
  EXPECT_EQ(outcome->counters.count("btr_enums_unknown"), 1U);
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
    const auto outcome = read_job_bytes(file_of_chunks({chunk, end_chunk(1)}), "t.btr");
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->counters.count("btr_chunks_malformed"), 1U) << kind;
    EXPECT_TRUE(outcome->job.ranks.empty()) << kind;
  }
}

TEST(BtrLayout, lengths_of_texts_and_lists_that_exceed_their_bytes_are_refused) {
  const Bytes name = chunk_of({.kind = number(ChunkKind::kNames), .rank = 0, .records = 1},
                              {2, 5, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 'x'});
  const Bytes peers = chunk_of({.kind = number(ChunkKind::kCollectives), .rank = 0, .records = 1,
                                .index = 1},
                               {8, 1, 1, 1, 1, 5, 1, 1, 1, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
                                0x0F, 1, 0, 0});
  const auto outcome = read_job_bytes(file_of_chunks({name, peers, end_chunk(2)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_malformed"), 2U);
  EXPECT_EQ(outcome->counters.count("btr_records_lost"), 2U);
}

TEST(BtrLayout, a_number_that_its_field_cannot_hold_makes_the_chunk_malformed) {
  // One stream: system id 7, priority 2^33 zigzagged, which is no 32-bit integer.
  const Bytes stream = chunk_of({.kind = number(ChunkKind::kStreams), .rank = 0, .records = 1},
                                {2, 1, 5, 7, 0x80, 0x80, 0x80, 0x80, 0x40});
  const auto outcome = read_job_bytes(file_of_chunks({stream, end_chunk(1)}), "t.btr");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->counters.count("btr_chunks_malformed"), 1U);
}

}  // namespace
}  // namespace bubblesim::traces::format
