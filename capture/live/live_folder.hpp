// The folder in which the processes of two jobs leave what they count: made for one run, removed
// after it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/live/live_counts.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

class LiveFolder {
 public:
  /// Makes the folder in `parent`, which exists.
  [[nodiscard]] static Result<std::unique_ptr<LiveFolder>> make(const std::string& parent,
                                                                std::uint32_t clients);
  ~LiveFolder();
  LiveFolder(const LiveFolder&) = delete;
  LiveFolder& operator=(const LiveFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return folder_->path(); }
  [[nodiscard]] const LiveCounts& counts(std::uint32_t client) const { return *counts_[client]; }
  /// What the processes noted so far, a line each.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  explicit LiveFolder(std::unique_ptr<ScratchFolder> folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<void> add_counts(std::uint32_t client);

  std::unique_ptr<ScratchFolder> folder_;
  std::vector<LiveCounts*> counts_;  ///< mapped
};

}  // namespace bubblesim::capture
