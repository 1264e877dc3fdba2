// Reads the files of a job, which are independent of each other, on the caller's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {

/// read_one(path, progress) gives a Result<File>. Returns the files in the order of `paths`, or the
/// first file's fault. `progress` is called on the calling thread only, for the files that this
/// thread reads.
template <class File, class ReadOne>
[[nodiscard]] Result<std::vector<File>> read_files(std::span<const std::filesystem::path> paths,
                                                   const TaskRunner& runner,
                                                   const ProgressCallback& progress,
                                                   const ReadOne& read_one) {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<Result<File>> read(paths.size());
  const auto read_at = [&](std::size_t i) {
    const bool tells = std::this_thread::get_id() == caller;
    read[i] = read_one(paths[i], tells ? progress : ProgressCallback{});
  };
  if (runner) {
    runner(paths.size(), read_at);
  } else {
    for (std::size_t i = 0; i < paths.size(); ++i) read_at(i);
  }
  std::vector<File> files;
  files.reserve(read.size());  // growing would copy them
  for (Result<File>& file : read) {
    if (!file) return tl::unexpected<Error>(file.error());
    files.push_back(*std::move(file));
  }
  return files;
}

// Reads the rank in a trace file's name.

/// The number after the last "rank" of a file's name: "x-rank6-chrome.json", "rank_0.json".
[[nodiscard]] std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path);

}  // namespace bubblesim::traces
