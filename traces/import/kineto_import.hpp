// Imports PyTorch profiler (Kineto) traces: one JSON file for each rank, plain or gzip.
//
// The text is streamed: memory is a small multiple of the result plus a window of 64 KiB. Repairs,
// guesses and losses are counted (kineto_counters.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/import/collective_times.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

struct ImportProgress {
  std::string_view file;            ///< the file being read
  std::uint64_t bytes_read = 0;     ///< of the file on disk
  std::uint64_t bytes_total = 0;
};

/// Called on the importing thread after every block of about 128 KiB of text; not called for files
/// that other threads read.
using ProgressCallback = std::function<void(const ImportProgress&)>;

/// Calls task(0) ... task(count - 1), each once, on any threads; returns when all are done.
using TaskRunner =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)>;

struct ImportOptions {
  /// Overrides the rank that the file gives.
  std::optional<std::uint32_t> rank;
  /// A longer event is treated as damage. Also bounds the memory that damage can cost.
  std::size_t max_event_bytes = std::size_t{64} << 20U;
  /// Runs the reading of a job's files; none: one after another. Does not change the result.
  TaskRunner runner = {};
  /// Chakra: gives durations to collectives without one; empty: they last zero, and are counted.
  CollectiveTimes collective_times = {};
};

struct KinetoProcess {
  std::vector<RankTrace> ranks;
  bool names_rank = false;  ///< the rank is from the file, not the caller
};

/// Reads one process: a rank for each GPU on which it ran kernels, by device; in a job of several
/// processes the main GPU's rank comes first. Times become absolute (base + ts). Faults: unreadable
/// file, not a Kineto trace (with its likely format), or no device activity in it.
[[nodiscard]] Result<KinetoProcess> import_kineto_process(
    const std::filesystem::path& path, const ImportOptions& options = {},
    const ProgressCallback& progress = {});

/// The first rank of a text in memory; `source` is its name in messages.
[[nodiscard]] Result<RankTrace> import_kineto_text(std::string_view text, std::string_view source,
                                                   const ImportOptions& options = {});

/// Reads one file for each process. Ranks come from distributedInfo, else from the file's name
/// ("...rank3..."), else from the order of `paths`. The result is sorted by rank; its ranks agree
/// on the world size. Further GPUs of a process are ranks from the world size on. Faults: two files
/// of one rank, different world sizes, any file's fault. Missing ranks are counted in the first
/// rank's counters (`job_ranks_missing`).
[[nodiscard]] Result<JobTrace> import_kineto_job(std::span<const std::filesystem::path> paths,
                                                 const ImportOptions& options = {},
                                                 const ProgressCallback& progress = {});

}  // namespace bubblesim::traces
