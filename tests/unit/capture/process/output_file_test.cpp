// Names of recordings; no file that is there is ever touched.
#include "capture/record/process/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace bubblesim::capture {
namespace {

class OutputFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "bubblesim-out-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string in(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] bool there(const std::string& name) const {
    return std::filesystem::exists(folder_ / name);
  }
  std::filesystem::path folder_;
};

TEST_F(OutputFiles, GrowUnderOneNameAndEndUnderAnother) {
  auto file = RecordingFile::claim(folder_.string(), 3, 77, Readers::kOwner);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->path(), in("rank3.recording.btr"));
  ASSERT_TRUE(file->complete());
  EXPECT_EQ(file->path(), in("rank3.btr"));
  EXPECT_FALSE(there("rank3.recording.btr"));
}

TEST_F(OutputFiles, AFolderIsMadeAndAFilesNameIsKept) {
  EXPECT_TRUE(RecordingFile::claim(in("a/b"), 0, 77, Readers::kOwner));
  EXPECT_TRUE(there("a/b/rank0.recording.btr"));
  auto file = RecordingFile::claim(in("c/mine.btr"), 5, 77, Readers::kOwner);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->complete());
  EXPECT_EQ(file->path(), in("c/mine.btr"));
}

TEST_F(OutputFiles, WhatIsThereAlreadyIsLeftAlone) {
  std::ofstream(in("rank0.recording.btr")) << "of a job that was killed";
  std::ofstream(in("rank0.btr")) << "of a job before";
  auto file = RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path(), in("rank0.pid77.recording.btr"));
  auto second = RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path(), in("rank0.pid77.2.recording.btr"));
  ASSERT_TRUE(file->complete());
  EXPECT_EQ(file->path(), in("rank0.pid77.btr"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "rank0.btr"), 15U);
}

TEST_F(OutputFiles, OnlyTheOwnerReadsThemUnlessAllMay) {
  using std::filesystem::perms;
  const mode_t before = ::umask(022);
  const auto own = RecordingFile::claim(in("own"), 0, 77, Readers::kOwner);
  const auto shown = RecordingFile::claim(in("shown"), 0, 77, Readers::kAll);
  ::umask(before);
  ASSERT_TRUE(own && shown);
  EXPECT_EQ(std::filesystem::status(own->path()).permissions(), perms{0600});
  EXPECT_EQ(std::filesystem::status(shown->path()).permissions(), perms{0644});
}

TEST_F(OutputFiles, OfNothingRecordedNothingIsLeft) {
  auto file = RecordingFile::claim(folder_.string(), 0, 77, Readers::kOwner);
  ASSERT_TRUE(file);
  file->discard();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(OutputFiles, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(in("file")) << "no folder";
  const auto file = RecordingFile::claim(in("file/below"), 0, 77, Readers::kOwner);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().text().find(in("file/below")), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::capture
