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

/// One trace a rank, all on one clock.
[[nodiscard]] JobTrace make_sample_training(const SampleOptions& options);

/// A job of one trace.
[[nodiscard]] JobTrace make_sample_inference(const SampleServiceOptions& options);

/// Kineto's Chrome-trace JSON. Times are microseconds with three decimals, which keeps every
/// nanosecond. Edges are written as the record and wait calls that made them, with the "cuda_sync"
/// rows that join the two. Host costs outside calls and edges without calls are left out: Kineto
/// has no field for them. O(records).
[[nodiscard]] std::string write_kineto_json(const RankTrace& trace);

/// A file of the samples: its path below the folder, and the profiler's JSON that it holds.
struct SampleFile {
  std::string path;  ///< ends in ".json.gz"
  std::string json;  ///< before compression
};

/// The samples as stored in traces/samples, with default options.
[[nodiscard]] std::vector<SampleFile> sample_files();

/// Writes all sample files below `folder`, which it creates if it is missing. Returns the paths.
[[nodiscard]] Result<std::vector<std::string>> write_samples(const std::string& folder);

}  // namespace bubblesim::traces
