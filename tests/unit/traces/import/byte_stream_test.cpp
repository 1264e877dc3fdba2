// Inputs as a whole: plain or gzip, one member or several, with what may follow or lack.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "sim/base/packed_file.hpp"
#include "tests/unit/traces/import/gzip_samples.hpp"

namespace bubblesim {
namespace {

namespace sample = traces::sample;
using sample::gzip, sample::like_a_trace;

struct Input {
  std::string text;
  bool packed = false;
  bool damaged = false;
  std::uint64_t consumed = 0;
};

Input read_all(const std::string& bytes, std::size_t block = 131'072) {
  ByteStream source = ByteStream::from_memory(bytes);
  Input all;
  std::string buffer(block, '\0');
  for (std::size_t count = block; count == block;) {
    count = source.read(buffer.data(), block);
    all.text.append(buffer, 0, count);
  }
  EXPECT_EQ(source.read(buffer.data(), block), 0U) << "0 after the end";
  all.packed = source.packed();
  all.damaged = source.damaged();
  all.consumed = source.consumed();
  return all;
}

TEST(ByteStream, plain_text_passes_whatever_the_blocks) {
  for (const std::size_t bytes : {0, 1, 16384, 16385, 400'000}) {
    const std::string text = like_a_trace(bytes);
    for (const std::size_t block : {100, 16384, 131'072}) {
      const Input input = read_all(text, block);
      EXPECT_TRUE(input.text == text) << bytes << ' ' << block;
      EXPECT_FALSE(input.packed || input.damaged);
      EXPECT_EQ(input.consumed, bytes);
    }
  }
}

TEST(ByteStream, gzip_is_unpacked_whatever_the_blocks) {
  for (const std::size_t bytes : {0, 1, 65536, 131'072, 700'000}) {
    const std::string text = like_a_trace(bytes);
    const std::string packed = gzip(text);
    for (const std::size_t block : {100, 16384, 131'072}) {
      const Input input = read_all(packed, block);
      EXPECT_TRUE(input.text == text) << bytes << ' ' << block;
      EXPECT_TRUE(input.packed);
      EXPECT_FALSE(input.damaged);
      EXPECT_EQ(input.consumed, packed.size());
    }
  }
}

TEST(ByteStream, members_follow_each_other_empty_ones_too) {
  const std::string empty = gzip("");
  std::string packed = empty + gzip("one, ") + empty + empty + gzip("two, ");
  std::string text = "one, two, ";
  for (int i = 0; i < 2'000; ++i) {
    packed += gzip("three, ");
    text += "three, ";
  }
  const Input input = read_all(packed + empty);
  EXPECT_EQ(input.text, text);
  EXPECT_FALSE(input.damaged);
}

TEST(ByteStream, what_follows_the_last_member_and_is_none_ends_it) {
  const std::string zeros(1000, '\0');
  for (const std::string& after : {zeros, std::string("text"), std::string("\x8b")}) {
    const Input input = read_all(gzip("one") + after);
    EXPECT_EQ(input.text, "one");
    EXPECT_FALSE(input.damaged);
  }
}

TEST(ByteStream, what_begins_as_a_member_and_is_none_is_damage) {
  for (const char* after : {"\x1f", "\x1f\x8b", "\x1f\x9d compress", "\x1f\x8b no gzip"}) {
    const Input input = read_all(gzip("one") + after);
    EXPECT_EQ(input.text, "one");
    EXPECT_TRUE(input.damaged);
  }
}

TEST(ByteStream, a_cut_anywhere_is_damage_and_keeps_what_was_before) {
  const std::string text = like_a_trace(200'000);
  const std::string packed = gzip(text);
  for (const std::size_t less : {1, 4, 8, 9, 1000, 10'000}) {
    const Input input = read_all(packed.substr(0, packed.size() - less));
    EXPECT_TRUE(input.damaged) << less;
    EXPECT_TRUE(text.starts_with(input.text)) << less;
    // Eight bytes of trailer; before it, a byte packs at most 50 of text here.
    EXPECT_GE(input.text.size() + 50 * less, text.size() + (less <= 8 ? 50 * less : 0)) << less;
  }
  EXPECT_TRUE(read_all(packed.substr(0, 2)).damaged);
}

TEST(ByteStream, damage_ends_the_input_though_a_member_follows) {
  std::string wrong = gzip("one");
  wrong.back() = 'x';
  const Input input = read_all(wrong + gzip("two"));
  EXPECT_EQ(input.text, "one");
  EXPECT_TRUE(input.damaged);
}

TEST(ByteStream, what_is_no_regular_file_is_refused_unopened) {
  const std::string pipe = ::testing::TempDir() + "/bubblesim_byte_stream_pipe";
  std::remove(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto opened = ByteStream::open(pipe);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "is not a regular file; expected one trace file");
  std::remove(pipe.c_str());
}

}  // namespace

// What every library that unpacks gzip must do alike: however the blocks fall, and with damage.

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's name
void PrintTo(const GzipLibrary& library, std::ostream* out) { *out << library.name; }

namespace {

using Status = GzipInflater::Status;

constexpr std::size_t kHeader = 10;   // without optional fields
constexpr std::size_t kTrailer = 8;   // sum of check, length

struct Unpacked {
  std::string text;
  std::size_t taken = 0;
  Status status = Status::kOpen;  ///< kOpen: the input ended inside the member

  friend bool operator==(const Unpacked&, const Unpacked&) = default;
};

Unpacked unpack_next(GzipInflater& inflater, std::string_view packed, std::size_t in_block = 65536,
                     std::size_t out_block = 65536) {
  Unpacked all;
  std::string block(out_block, '\0');
  inflater.start_member();
  while (true) {
    const auto step = inflater.step(packed.substr(all.taken, in_block), block);
    all.text.append(block, 0, step.made);
    all.taken += step.taken;
    all.status = step.status;
    const bool stuck = step.taken == 0 && step.made == 0;
    if (step.status != Status::kOpen || stuck) return all;
  }
}

class GzipInflaterTest : public testing::TestWithParam<GzipLibrary> {
 protected:
  static Unpacked unpack(std::string_view packed, std::size_t in_block = 65536,
                         std::size_t out_block = 65536) {
    return unpack_next(*GetParam().make(), packed, in_block, out_block);
  }
};

void expect_text_with_blocks(const GzipLibrary& library, std::size_t bytes,
                             const std::vector<std::size_t>& in_blocks,
                             const std::vector<std::size_t>& out_blocks) {
  const std::string text = like_a_trace(bytes);
  for (const std::string& packed :
       {gzip(text), sample::gzip_with_all_fields(text), gzip(text, nullptr, 0)}) {
    const Unpacked whole{text, packed.size(), Status::kMemberEnd};
    for (const std::size_t in_block : in_blocks) {
      for (const std::size_t out_block : out_blocks) {
        const auto inflater = library.make();
        EXPECT_TRUE(unpack_next(*inflater, packed, in_block, out_block) == whole)
            << in_block << ' ' << out_block;
      }
    }
  }
}

TEST_P(GzipInflaterTest, text_does_not_depend_on_where_blocks_end) {
  // Small blocks of much text take long, and meet nothing else.
  expect_text_with_blocks(GetParam(), 3'000, {1, 3, 10, 1000}, {1, 7, 4096});
  expect_text_with_blocks(GetParam(), 300'000, {1000, 16384, 1'000'000},
                          {4096, 65536, 70'001, 131'072, 300'000, 400'000});
}

TEST_P(GzipInflaterTest, takes_nothing_that_follows_the_member) {
  for (const std::size_t bytes : {0, 1, 100, 200'000}) {
    const std::string text = like_a_trace(bytes);
    const std::string packed = gzip(text);
    const Unpacked whole{text, packed.size(), Status::kMemberEnd};
    for (const std::size_t in_block : {1, 5, 65536}) {
      EXPECT_TRUE(unpack(packed + "what follows it", in_block) == whole) << bytes;
    }
  }
}

TEST_P(GzipInflaterTest, members_follow_each_other_and_damage_is_forgotten) {
  const auto inflater = GetParam().make();
  const std::string packed = gzip("second");
  EXPECT_EQ(unpack_next(*inflater, gzip(like_a_trace(100'000))).status, Status::kMemberEnd);
  EXPECT_EQ(unpack_next(*inflater, packed).text, "second");
  EXPECT_EQ(unpack_next(*inflater, "\x1f\x8b no gzip at all").status, Status::kDamaged);
  EXPECT_EQ(unpack_next(*inflater, packed.substr(0, packed.size() - 1)).status, Status::kOpen);
  EXPECT_EQ(unpack_next(*inflater, packed).status, Status::kMemberEnd);
}

TEST_P(GzipInflaterTest, a_cut_member_stays_open_and_gives_all_that_zlib_gives) {
  const std::string text = like_a_trace(3'000);
  const std::string packed = sample::gzip_with_all_fields(text);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const std::string_view cut = std::string_view(packed).substr(0, size);
    const Unpacked here = unpack(cut, 100, 50);
    EXPECT_EQ(here.status, Status::kOpen) << size;
    EXPECT_EQ(here.text, unpack_next(*make_zlib_inflater(), cut).text) << size;
  }
}

TEST_P(GzipInflaterTest, text_before_damage_is_given_whatever_the_block) {
  // No code of a block begins with the bits of 0xff: type 3 is reserved.
  const std::string before = like_a_trace(150'000);
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(200'000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(before.data()));
  stream.avail_in = static_cast<uInt>(before.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_SYNC_FLUSH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  packed += std::string(100, '\xff');
  for (const std::size_t out_block : {100, 16384, 65536, 131'072, 200'000}) {
    const Unpacked here = unpack(packed, 16384, out_block);
    EXPECT_EQ(here.status, Status::kDamaged) << out_block;
    EXPECT_TRUE(here.text == before) << out_block << ": " << here.text.size() << " bytes";
  }
}

TEST_P(GzipInflaterTest, no_flipped_bit_goes_unseen) {
  const std::string packed = gzip(like_a_trace(2'000));
  for (std::size_t at = kHeader; at < packed.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = packed;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ (1U << bit));
      ASSERT_NE(unpack(flipped).status, Status::kMemberEnd) << "byte " << at << " bit " << bit;
    }
  }
}

TEST_P(GzipInflaterTest, a_wrong_sum_or_length_is_damage_behind_the_whole_text) {
  const std::string text = like_a_trace(150'000);
  const std::string packed = gzip(text);
  for (std::size_t at = packed.size() - kTrailer; at < packed.size(); ++at) {
    for (const std::size_t in_block : {1, 65536}) {
      std::string wrong = packed;
      wrong[at] = static_cast<char>(static_cast<unsigned char>(wrong[at]) ^ 1U);
      const Unpacked here = unpack(wrong, in_block);
      EXPECT_EQ(here.status, Status::kDamaged) << at;
      EXPECT_TRUE(here.text == text) << at;
    }
  }
}

TEST_P(GzipInflaterTest, a_header_that_is_none_is_damage) {
  const std::string packed = sample::gzip_with_all_fields("text");
  const auto with = [&packed](std::size_t at, char byte) {
    std::string wrong = packed;
    wrong[at] = byte;
    return wrong;
  };
  std::string reserved = gzip("text");
  reserved[3] = '\x80';
  EXPECT_EQ(unpack(with(0, 'a')).status, Status::kDamaged);
  EXPECT_EQ(unpack(with(1, 'a')).status, Status::kDamaged);
  EXPECT_EQ(unpack(with(2, 7)).status, Status::kDamaged) << "no such method";
  EXPECT_EQ(unpack(reserved).status, Status::kDamaged) << "a reserved flag";
  EXPECT_EQ(unpack(with(20, 'a')).status, Status::kDamaged) << "the header's own sum of check";
  EXPECT_EQ(unpack(with(20, 'a'), 7).status, Status::kDamaged);
}

INSTANTIATE_TEST_SUITE_P(Libraries, GzipInflaterTest, testing::ValuesIn(gzip_libraries()),
                         [](const auto& tested) {
                           std::string name(tested.param.name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace bubblesim
