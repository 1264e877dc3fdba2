// A job as the bytes of its .btr file: two imports are equal if their bytes are.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "traces/format/trace_writer.hpp"

namespace bubblesim::traces::sample {

inline std::string btr_bytes(RankTrace trace) {
  const std::string path = ::testing::TempDir() + "btr_bytes.btr";
  JobTrace job;
  job.ranks.push_back(std::move(trace));
  EXPECT_TRUE(format::write_job(path, job));
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return bytes;
}

}  // namespace bubblesim::traces::sample
