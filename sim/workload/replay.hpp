// Runs a job's programs alone, once or repeatedly, and compares with the recording.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::workload {

struct RankReplay {
  std::uint32_t rank = 0;
  std::vector<Duration> recorded;   ///< iteration times; without marks one, the whole span
  std::vector<Duration> simulated;  ///< as many as `recorded`
  Duration recorded_span{};         ///< first record to last end
  Duration simulated_span{};

  /// Mean over iterations of |simulated - recorded| / recorded.
  [[nodiscard]] double mean_error() const;
  /// |simulated - recorded| / recorded of the whole span.
  [[nodiscard]] double span_error() const;
};

struct ReplayReport {
  std::vector<RankReplay> ranks;
  std::uint64_t device_ops = 0;  ///< of the job, counted once
  std::uint64_t events = 0;      ///< calls made, operations started and ended, in every pass

  /// Mean of the ranks' mean errors, and the largest of them.
  [[nodiscard]] double mean_error() const;
  [[nodiscard]] double worst_error() const;
};

/// Runs one pass. Fault: the program cannot finish (a dependency is never met), with rank and
/// operation.
[[nodiscard]] Result<ReplayReport> replay_alone(const JobProgram& job,
                                                const hardware::GpuSpec& spec);

/// Passes of repeat_alone: first those ignored, then those averaged.
inline constexpr std::uint64_t kPassesToSettle = 4;
inline constexpr std::uint64_t kPassesCounted = 4;

/// Repeats the pass, as a run does. Each rank reports one iteration time, recorded and simulated:
/// the mean of its pass. Spans are the lengths of a whole pass. Fault: as replay_alone.
[[nodiscard]] Result<ReplayReport> repeat_alone(const JobProgram& job,
                                                const hardware::GpuSpec& spec);

}  // namespace bubblesim::workload
