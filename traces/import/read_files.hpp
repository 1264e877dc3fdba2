// Reads the files of a job, which are independent of each other, on the caller's threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {

/// Runs task(0) to task(count - 1), on the caller's threads if it has any.
inline void run_tasks(const TaskRunner& runner, std::size_t count,
                      const std::function<void(std::size_t)>& task) {
  if (runner) return runner(count, task);
  for (std::size_t i = 0; i < count; ++i) task(i);
}

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
  run_tasks(runner, paths.size(), [&](std::size_t i) {
    const bool tells = std::this_thread::get_id() == caller;
    read[i] = read_one(paths[i], tells ? progress : ProgressCallback{});
  });
  std::vector<File> files;
  files.reserve(read.size());  // growing would copy them
  for (Result<File>& file : read) {
    if (!file) return tl::unexpected<Error>(file.error());
    files.push_back(*std::move(file));
  }
  return files;
}

// The rank of each file.

/// Gives ranks to files that do not record theirs, all by their names or all by their order, and
/// sorts the files by rank. Fault: two files of one rank. A File has `has_rank`, `named_rank`,
/// rank(), set_rank(), counters() and source(), its name in faults.
template <class File>
[[nodiscard]] Result<void> order_by_rank(std::vector<File>& files, const CounterSpec& from_name,
                                         const CounterSpec& from_order) {
  const bool by_name = std::ranges::all_of(
      files, [](const File& file) { return file.has_rank || file.named_rank; });
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    if (files[i].has_rank) continue;
    files[i].set_rank(by_name ? *files[i].named_rank : i);
    files[i].counters().add(by_name ? from_name : from_order);
  }
  std::ranges::stable_sort(files, {}, &File::rank);
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].rank() != files[i - 1].rank()) continue;
    return fail(files[i].source(), {},
                "is rank " + std::to_string(files[i].rank()) + ", and so is " +
                    files[i - 1].source() +
                    "; expected the files of one recording: name them, or move the others away");
  }
  return {};
}

/// The number after the last "rank" of a file's name: "x-rank6-chrome.json", "rank_0.json".
[[nodiscard]] std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path);

}  // namespace bubblesim::traces
