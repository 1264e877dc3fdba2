// Runs a job's programs alone, once, and compares with the recording.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/program.hpp"

namespace bubblesim::workload {

struct RankReplay {
  std::uint32_t rank = 0;
  std::vector<Duration> recorded;   ///< iteration times; one, the whole span, if none is marked
  std::vector<Duration> simulated;  ///< as many
  Duration recorded_span{};         ///< first record to last end
  Duration simulated_span{};

  /// Mean over iterations of |simulated - recorded| / recorded.
  [[nodiscard]] double mean_error() const;
  /// |simulated - recorded| / recorded of the whole span.
  [[nodiscard]] double span_error() const;
};

struct ReplayReport {
  std::vector<RankReplay> ranks;
  std::uint64_t device_ops = 0;
  std::uint64_t events = 0;  ///< calls made, operations started and ended

  /// Mean of the ranks' mean errors; the largest of them.
  [[nodiscard]] double mean_error() const;
  [[nodiscard]] double worst_error() const;
};

/// Fault: the program cannot finish (a dependency that never comes), with rank and operation.
[[nodiscard]] Result<ReplayReport> replay_alone(const JobProgram& job,
                                                const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
