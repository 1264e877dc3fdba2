// Parametrised test cases, one a recorded job.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/folders.hpp"
#include "tests/temp_folder.hpp"
#include "tests/validation/data_folder.hpp"

namespace bubblesim::testing {

/// The job's name in letters, digits and underscores, behind its index, which makes it unique.
inline std::string case_name(const ::testing::TestParamInfo<validation::RecordedJob>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.name;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

/// Jobs whose files have at most `bytes` bytes on disk. Larger ones would slow the gate down; they
/// are included if BUBBLESIM_LARGE_JOBS is set (scripts/check-recorded-jobs --cases).
inline std::vector<validation::RecordedJob> jobs_up_to(std::uintmax_t bytes) {
  std::vector<validation::RecordedJob> jobs;
  for (validation::RecordedJob& job : validation::every_job(kDataFolder)) {
    std::uintmax_t size = 0;
    for (const std::string& path : job.paths) {
      std::error_code absent;  // an absent file counts 0 bytes; its test case is skipped by name
      const std::uintmax_t found = std::filesystem::file_size(path, absent);
      if (!absent) size += found;
    }
    if (size <= bytes || std::getenv("BUBBLESIM_LARGE_JOBS") != nullptr) {
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

/// A recorded job; skipped if one of its files is absent.
class RecordedJobTest : public ::testing::TestWithParam<validation::RecordedJob> {
 protected:
  void SetUp() override {
    for (const std::string& path : GetParam().paths) {
      if (!std::filesystem::exists(path)) GTEST_SKIP() << "no file " << path;
    }
  }
};

}  // namespace bubblesim::testing
