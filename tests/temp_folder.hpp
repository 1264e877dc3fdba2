// A folder of its own for a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "sim/base/output_file.hpp"

namespace bubblesim {

/// Below testing::TempDir(); removed with what is in it.
class TempFolder {
 public:
  [[nodiscard]] const std::string& path() const { return folder_->path(); }
  [[nodiscard]] std::string path(const std::string& name) const { return path() + "/" + name; }
  /// Makes the folders that `name` has before it, too; returns the file's path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::unique_ptr<ScratchFolder> folder_ =
      std::move(*ScratchFolder::make(::testing::TempDir(), "test"));
};

}  // namespace bubblesim
