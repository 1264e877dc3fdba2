// The project's own samples: small jobs that show bubbles, made by a list simulation and stored in
// traces/samples. They are illustrations for the demo and the tests; no figure rests on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// A transformer trained by a pipeline (1F1B) of `stages`, each on `ranks / stages` replicas.
/// Rank = stage * replicas + replica.
struct SampleOptions {
  std::uint32_t ranks = 4;
  std::uint32_t stages = 2;
  std::uint32_t micro_batches = 4;
  std::uint32_t iterations = 4;
  std::uint32_t layers = 8;  ///< of the whole model; the same number on every stage
  std::uint64_t seed = 1;
};

/// An inference service that runs one batch after the other on one GPU.
struct SampleServiceOptions {
  std::uint32_t passes = 8;
  std::uint32_t layers = 12;
  std::uint64_t seed = 2;
};

/// All faults of the options: zeros, and numbers that do not divide.
[[nodiscard]] Errors check_options(const SampleOptions& options);

/// One trace a rank, all on one clock. `check_options` must have found no fault.
[[nodiscard]] JobTrace make_sample_training(const SampleOptions& options);

/// A job of one trace.
[[nodiscard]] JobTrace make_sample_inference(const SampleServiceOptions& options);

/// A file of the samples: its path below the folder, and the profiler's JSON that it holds.
struct SampleFile {
  std::string path;  ///< ends in ".json.gz"
  std::string json;  ///< before compression
};

/// The samples as stored in traces/samples, with default options.
[[nodiscard]] std::vector<SampleFile> sample_files();

/// Compresses as gzip does, without a time stamp or file name: the same text gives the same bytes.
[[nodiscard]] Result<std::string> gzip(const std::string& text);

/// Writes all sample files below `folder`, which it creates if it is missing. Returns the paths.
[[nodiscard]] Result<std::vector<std::string>> write_samples(const std::string& folder);

}  // namespace bubblesim::traces
