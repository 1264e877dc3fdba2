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

/// The first of the job's files that is absent; empty: all are present.
inline std::string absent_file(const validation::RecordedJob& job) {
  for (const std::string& path : job.paths) {
    if (!std::filesystem::exists(path)) return path;
  }
  return {};
}

// A folder of its own for the running test case, removed with the object.

class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(info->test_suite_name()) + "_" + info->name();
    std::replace(name.begin(), name.end(), '/', '_');
    path_ = std::filesystem::path(::testing::TempDir()) / ("bubblesim_recorded_" + name);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bubblesim::testing
