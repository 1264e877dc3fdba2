// The stored samples are what the generator makes.
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/samples/samples.hpp"

namespace bubblesim::traces {
namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string gunzip(const std::filesystem::path& path) {
  std::string out;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return out;
  char buffer[1 << 16];
  for (int n = gzread(file, buffer, sizeof buffer); n > 0; n = gzread(file, buffer, sizeof buffer))
    out.append(buffer, static_cast<std::size_t>(n));
  gzclose(file);
  return out;
}

// Compared before compression, so that another release of zlib does not fail the test.
TEST(SampleFiles, StoredSamplesAreWhatTheGeneratorMakes) {
  const std::filesystem::path folder =
      std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces" / "samples";
  for (const SampleFile& file : sample_files()) {
    ASSERT_TRUE(std::filesystem::exists(folder / file.path)) << file.path;
    EXPECT_TRUE(gunzip(folder / file.path) == file.json)
        << file.path << " differs; traces/samples/README.md says how to write it anew";
  }
}

TEST(SampleFiles, WritingTwiceGivesTheSameBytesUnder200KB) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "bubblesim_samples_test";
  const auto first = write_samples((folder / "a").string());
  const auto second = write_samples((folder / "b").string());
  ASSERT_TRUE(first && second);
  ASSERT_EQ(first->size(), 5u);
  for (std::size_t i = 0; i < first->size(); ++i) {
    const std::string bytes = read_bytes((*first)[i]);
    EXPECT_TRUE(bytes == read_bytes((*second)[i])) << (*first)[i];
    EXPECT_LT(bytes.size(), 200u * 1024u);
    EXPECT_EQ(bytes.substr(4, 4), std::string(4, '\0')) << "gzip's time stamp";
  }
  std::filesystem::remove_all(folder);
}

TEST(SampleFiles, AFolderThatCannotBeMadeIsNamed) {
  const auto written = write_samples("/proc/no_such_folder");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text().find("/proc/no_such_folder"), std::string::npos);
}

}  // namespace
}  // namespace bubblesim::traces
