// Runs a loaded config: the job alone, each filler with GPUs of its own, then every policy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/base/result.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/baselines.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// How far a run is, for other threads: simulated time of its policies. More than one policy may
/// run at once.
struct SimulatedTime {
  std::atomic<std::int64_t> done_ns{0};
  std::atomic<std::int64_t> all_ns{0};  ///< 0: not known yet
};

/// What becomes of a run that is stopped.
enum class WhenStopped : std::uint8_t {
  kFault,     ///< nothing
  kKeepDone,  ///< the results of policies that had ended; a fault if there is none
};

/// What one policy's run did around the end of the warm-up: `policy` into RunConfig::policies,
/// `iteration` the mean time of one alone. Called on the thread that simulated it, which several
/// may be at once.
using TimelineSink = std::function<void(
    std::size_t policy, const observe::TimelineRecorder& timeline, Duration iteration)>;
/// Recorded for a sink: so many mean iterations before the end of the warm-up and after it.
inline constexpr int kSinkIterationsBefore = 1;
inline constexpr int kSinkIterationsAfter = 6;

/// Whether a run may be larger than check_size() allows.
enum class Size : std::uint8_t { kChecked, kAny };

struct RunOptions {
  /// For simulations that run at once and, if these are fewer, for the GPUs of each.
  /// Results do not depend on it. 0 counts as 1.
  std::size_t threads = 1;
  /// The policy (into RunConfig::policies) whose timeline is recorded, and where.
  std::optional<std::size_t> timeline_of;
  observe::TimelineRecorder* timeline = nullptr;
  /// Told of every policy's timeline; that of `timeline_of` is recorded in both windows.
  TimelineSink timelines = nullptr;
  /// Length of the intervals of PolicyResult::usage; 0: it is not recorded. Other results do not
  /// depend on it.
  Duration usage_interval{};
  ProgressText progress;
  /// If another thread sets it to true, the run ends with a fault soon after. Null: never.
  const std::atomic<bool>* stop = nullptr;
  WhenStopped when_stopped = WhenStopped::kFault;
  SimulatedTime* time = nullptr;  ///< null: not watched
  Size size = Size::kChecked;
  /// Parts of this run alone, as far as other runs have simulated them. No result depends on it.
  SharedBaselines baselines;
};

/// Reads traces, device and filler programs of a config, the ranks of the training job on
/// `threads`. Every fault names its file.
[[nodiscard]] CheckedResult<LoadedRun> load_run(const RunConfig& config,
                                                const std::string& device_folder,
                                                const ProgressText& progress = {},
                                                std::size_t threads = 1);

/// Everything that one config gives. The same inputs give the same report.
[[nodiscard]] Result<observe::RunReport> run_policies(const LoadedRun& loaded,
                                                      const policy::Registry& registry,
                                                      const RunOptions& options);

}  // namespace bubblesim::run
