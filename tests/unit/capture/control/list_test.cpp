// Which sockets are recorders'.
#include "capture/control/recorder_client.hpp"

#include <gtest/gtest.h>

namespace bubblesim::capture {
namespace {

TEST(List, OnlyListeningAbstractSocketsOfOurNameCount) {
  const auto found = listed_in(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 1 @bubblesim.1000.42\n"
      "0000000000000000: 00000002 00000000 00000000 0005 03 2 @bubblesim.1000.42\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 3 @bubblesim.1000\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 4 @bubblesim.1000.-3\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 5 @bubblesim.x.3\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 6 /run/bubblesim.0.7\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 7 @bubblesim.0.99999999999\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 8\n"
      "nonsense\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().user, 1000U);
  EXPECT_EQ(found.front().pid, 42);
  EXPECT_EQ(found.front().address.text, "@bubblesim.1000.42");
}

TEST(List, AFolderThatIsNotThereHoldsNone) {
  for (const ListedRecorder& recorder : list_recorders("/nowhere/at/all")) {
    EXPECT_EQ(recorder.address.text.front(), '@');
  }
}

}  // namespace
}  // namespace bubblesim::capture
