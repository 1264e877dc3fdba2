// Where recorders listen.
#include "capture/protocol/capture_request.hpp"

#include <gmock/gmock.h>

#include <cstddef>

namespace bubblesim::capture {
namespace {

TEST(Address, AnAbstractNameBeginsWithAZeroByteAndEndsWithItsLength) {
  const ControlAddress made = abstract_address(1000, 42);
  EXPECT_EQ(made.text, "@bubblesim.1000.42");
  EXPECT_EQ(made.address.sun_family, AF_UNIX);
  EXPECT_EQ(made.address.sun_path[0], '\0');
  EXPECT_EQ(std::string(made.address.sun_path + 1), "bubblesim.1000.42");
  EXPECT_EQ(made.length, offsetof(sockaddr_un, sun_path) + 1 + 17);
}

TEST(Address, TheLargestNumbersFit) {
  EXPECT_EQ(abstract_address(4294967295U, 2147483647).text, "@bubblesim.4294967295.2147483647");
}

TEST(Address, APathIsInTheFolderGiven) {
  EXPECT_EQ(path_address("/run/b", 0, 7)->text, "/run/b/bubblesim.0.7.sock");
  EXPECT_EQ(path_address("/run/b/", 0, 7)->text, "/run/b/bubblesim.0.7.sock");
}

// "/bubblesim.0.7.sock" has 19 bytes: a folder of 88 makes 107, which fits.
TEST(Address, AFolderWithTooLongANameIsRefused) {
  EXPECT_TRUE(path_address(std::string(88, 'f'), 0, 7));
  const auto refused = path_address(std::string(89, 'f'), 0, 7);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("108 bytes"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("107"));
}

TEST(Address, AFolderWithoutANameIsRefused) {
  EXPECT_FALSE(path_address("", 0, 7));
  EXPECT_FALSE(path_address(std::string_view("/a\0b", 4), 0, 7));
}

}  // namespace
}  // namespace bubblesim::capture
