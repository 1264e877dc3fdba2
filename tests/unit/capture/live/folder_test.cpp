// The folder of a run.
#include "capture/live/live_folder.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace bubblesim::capture {
namespace {

TEST(LiveFolder, CountsBeginAtZeroAndTheFolderGoesWithTheObject) {
  std::string path;
  {
    const auto folder = LiveFolder::make(testing::TempDir(), 2);
    ASSERT_TRUE(folder) << folder.error().text();
    path = (*folder)->path();
    EXPECT_EQ((*folder)->counts(1).kernels, 0U);
    EXPECT_THAT((*folder)->notes(), testing::IsEmpty());
    std::ofstream(path + "/" + kNotesFile) << "one\ntwo\n";
    EXPECT_THAT((*folder)->notes(), testing::ElementsAre("one", "two"));
    EXPECT_EQ(std::filesystem::file_size(path + "/client1"), sizeof(LiveCounts));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LiveFolder, AParentThatIsNotThereIsAFault) {
  const auto folder = LiveFolder::make("/no/such/parent", 1);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().text(), testing::HasSubstr("/no/such/parent"));
}

}  // namespace
}  // namespace bubblesim::capture
