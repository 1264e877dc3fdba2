// Small training jobs as PyTorch's profiler would have recorded them, made from a few numbers, so
// that the true iteration time is known.
//
// Each rank has one host thread, which launches the kernels of an iteration one after another onto
// one stream, the last of them an all-reduce that ends on all ranks together. A launch takes effect
// when it is called, and holds the thread while the stream has `queue` operations that have not
// ended. Kernel durations are drawn once per rank, so all iterations after the warm-up are alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::testing {

struct GeneratedJob {
  std::uint64_t seed = 1;
  std::uint32_t ranks = 2;
  std::uint32_t iterations = 6;      ///< recorded ones, with a marker each if `marks`
  std::uint32_t kernels = 60;        ///< of an iteration, without the all-reduce
  Duration kernel{100'000};          ///< mean; drawn between half and one and a half of it
  Duration think{2'000};             ///< of the host before each launch
  Duration call{4'000};              ///< of a launch that is not held
  Duration all_reduce{300'000};      ///< from the last rank's arrival on
  std::uint32_t queue = 1024;        ///< operations that a stream holds; a launch beyond waits
  bool synchronises = true;          ///< the host waits for the device at the end of an iteration
  Duration pause{};                  ///< of the host at the end of an iteration: data loading
  bool marks = true;                 ///< whether iterations are marked
  std::uint32_t before_window = 0;   ///< iterations before the recording begins
  Duration first_wait{};             ///< the recording begins with a wait for a copy, which other,
                                     ///< unrecorded work holds up; 0, or 10 us at least
  std::uint32_t warmups = 0;         ///< recorded iterations whose host takes ten times as long
  Duration idle_before{};            ///< idle time after a first recorded call
};

/// The files of the job's ranks, compact JSON.
[[nodiscard]] std::vector<std::string> kineto_files(const GeneratedJob& job);

/// From the begin of one iteration to the begin of the next, once the host is as far ahead of the
/// device as it gets.
[[nodiscard]] Duration steady_iteration(const GeneratedJob& job);

}  // namespace bubblesim::testing
