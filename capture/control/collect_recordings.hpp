// Finds a recording's files, joins them into timelines (traces/join) and sums them up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// One rank of one file.
struct RecordingSummary {
  std::string path;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string device;            ///< empty: not recorded
  Duration span{};               ///< from the first record's start to the last one's end
  std::uint64_t kernels = 0;     ///< without collectives
  std::uint64_t collectives = 0;
  std::uint64_t copies = 0;      ///< and memsets
  std::uint64_t calls = 0;
  std::uint64_t ranges = 0;      ///< without iterations
  std::uint64_t iterations = 0;
  std::uint64_t lost = 0;        ///< records known to be lost
  std::uint64_t bytes = 0;       ///< of the file
  bool complete = true;          ///< false: cut off or damaged; its readable part counts
  CounterSet counters;
};

struct CollectedRecordings {
  std::vector<RecordingSummary> recordings;  ///< by rank, then path
  Errors faults;                             ///< of files that could not be read or rewritten
};

/// Reads a .btr file and moves it to `wanted`, which may be `path` itself; a file of the recorder's
/// is joined and sorted. If only NCCL named the rank, "rank0.btr" becomes "rank<N>.btr" where that
/// is free. The file at `path` is removed only once the new one is whole.
[[nodiscard]] Result<std::vector<RecordingSummary>> collect_recording(const std::string& path,
                                                                      const std::string& wanted);

/// .btr files of a folder and its subfolders, in name order; none if it cannot be listed.
[[nodiscard]] std::vector<std::string> recordings_in(const std::string& folder);

using CollectProgress = std::function<void(const std::string& path)>;

/// The name that a recording gets once it is whole: "rank0.recording.btr", which a killed process
/// left, becomes "rank0.btr"; any other name stays.
[[nodiscard]] std::string whole_name(const std::string& path);

/// Collects each file within its folder, under its whole_name() unless that name is taken.
[[nodiscard]] CollectedRecordings collect_in_place(const std::vector<std::string>& paths);

/// A folder within the output folder that one job alone records into, so that jobs side by side
/// (the tasks of srun) do not take each other's files. Files move out when they are collected.
class JobFolder {
 public:
  /// Makes the output folder and "recording.<host>.<pid>" in it. Faults: it cannot be made, or
  /// nothing can be written there.
  [[nodiscard]] static Result<JobFolder> make(const std::string& output);
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Collects all but `busy`, which processes still write, and removes the folder if that leaves it
  /// empty. No file is replaced: if rank0.btr exists, the new one is named
  /// "rank0.<host>.<pid>.btr".
  [[nodiscard]] CollectedRecordings collect(const std::vector<std::string>& busy,
                                            const CollectProgress& progress = {}) const;

 private:
  JobFolder() = default;
  [[nodiscard]] std::string destination(const std::string& file) const;
  std::string output_;
  std::string path_;
  std::string tag_;  ///< "<host>.<pid>"
};

}  // namespace bubblesim::capture
