// One recorded job's figures: its iteration time and its bubbles by `inspect`, by `inspect
// --replay` and by `run` under the policy exclusive, and how much of the iteration hangs on
// kernels, host and link.
#pragma once

#include <cstddef>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "tests/validation/data_folder.hpp"

namespace bubblesim::testing {

/// Twice the share of the iteration that is saved where a resource is twice as fast: 1 where all
/// of the time is that resource's, 0 where it is never waited for.
struct Sensitivities {
  double kernels = 0;
  double host = 0;
  double link = 0;
  double fixed = 0;  ///< stays where these and copies are all twice as fast

  [[nodiscard]] double sum() const { return kernels + host + link; }
};

struct JobFigures {
  std::size_t ranks = 0;
  std::size_t recorded = 0;     ///< iterations; where none is marked, the recording is one
  std::size_t used = 0;         ///< of them
  Duration inspect{};           ///< iteration times, mean over ranks
  Duration replay{};
  Duration run{};
  double busy = 0;              ///< share of the inspected window in which any operation runs
  double own = 0;               ///< and in which one other than a collective does
  double host = 0;              ///< share of an iteration in which the host neither waits nor idles
  double link = 0;              ///< and in which a collective whose ranks have all arrived runs
  double inspect_bubbles = 0;   ///< share of the window; mean over ranks
  double run_bubbles = 0;
  double unexplained = 0;       ///< share of the iterations' time that nothing recorded explains
  Sensitivities sensitivities;
  bool device_assumed = false;  ///< no device file lists the recorded GPU

  /// Largest of the three iteration times over the smallest, less one.
  [[nodiscard]] double spread() const;
};

/// Fault: the files are no recording that a run could repeat.
[[nodiscard]] Result<JobFigures> figures_of(const validation::RecordedJob& job);

}  // namespace bubblesim::testing
