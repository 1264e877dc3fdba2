// Inputs as a whole: plain or gzip, one member or several, with what may follow or lack.
#include "traces/import/byte_stream.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>

#include "tests/unit/traces/import/gzip_samples.hpp"

namespace bubblesim::traces {
namespace {

using sample::gzip;
using sample::like_a_trace;

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
}  // namespace bubblesim::traces
