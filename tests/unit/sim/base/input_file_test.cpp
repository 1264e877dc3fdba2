#include "sim/base/input_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "sim/base/output_file.hpp"

namespace bubblesim {
namespace {

using ::testing::StartsWith;

TEST(input_file, is_read_to_its_last_byte) {
  const auto folder = ScratchFolder::make(::testing::TempDir(), "input-file");
  ASSERT_TRUE(folder);
  std::string text = "a\0b\r\n";
  text += std::string(std::size_t{200'000}, 'x');  // more than three blocks of 64 KiB
  const std::string path = (*folder)->path() + "/text";
  ASSERT_TRUE(write_whole_file(path, text));
  EXPECT_EQ(read_text_file(path).value(), text);
}

TEST(input_file, is_read_without_its_byte_order_mark) {
  const auto folder = ScratchFolder::make(::testing::TempDir(), "input-file");
  ASSERT_TRUE(folder);
  const std::string path = (*folder)->path() + "/text";
  ASSERT_TRUE(write_whole_file(path, "\xEF\xBB\xBFName,\xEF\xBB\xBF\n"));
  EXPECT_EQ(read_text_file(path).value(), "Name,\xEF\xBB\xBF\n");  // only the first is one
}

TEST(input_file, of_the_kernel_has_no_size_and_is_read) {
  EXPECT_THAT(read_text_file("/proc/self/status").value(), StartsWith("Name:"));
}

TEST(input_file, says_why_it_cannot_be_read) {
  EXPECT_EQ(read_text_file("no/such/file").error().text(),
            "no/such/file: cannot be read: No such file or directory");
  EXPECT_EQ(read_text_file("/proc").error().text(), "/proc: cannot be read: Is a directory");
}

}  // namespace
}  // namespace bubblesim
