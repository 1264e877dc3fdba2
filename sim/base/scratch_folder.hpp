// A folder for files that only matter while a command runs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sim/base/result.hpp"

namespace bubblesim {

class ScratchFolder {
 public:
  /// "bubblesim-PURPOSE-" and six letters, in `parent`, which exists. Fault: it cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<ScratchFolder>> make(const std::string& parent,
                                                                   const std::string& purpose);
  /// Removed with all that is in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace bubblesim
