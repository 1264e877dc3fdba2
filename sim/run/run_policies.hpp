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

/// Progress of a run, for other threads: simulated time, summed over its policies. Several policies
/// may run at once.
struct SimulatedTime {
  std::atomic<std::int64_t> done_ns{0};
  std::atomic<std::int64_t> all_ns{0};  ///< 0: not known yet
};

/// The result of a run that is stopped.
enum class WhenStopped : std::uint8_t {
  kFault,     ///< a fault
  kKeepDone,  ///< the results of policies that had ended; a fault if none had
};

/// Takes the timeline of one policy's run around the end of the warm-up. `policy` is an index into
/// RunConfig::policies, `iteration` the mean time of an iteration of the job alone. Called on the
/// thread that simulated the policy; several threads may call at once.
using TimelineSink = std::function<void(
    std::size_t policy, const observe::TimelineRecorder& timeline, Duration iteration)>;
/// The window recorded for a sink: mean iterations before and after the end of the warm-up.
inline constexpr int kSinkIterationsBefore = 1;
inline constexpr int kSinkIterationsAfter = 6;

/// Whether a run may be larger than check_size() allows.
enum class Size : std::uint8_t { kChecked, kAny };

struct RunOptions {
  /// Threads for simulations that run at once and, if there are more threads than simulations, for
  /// the GPUs of each. They change no result. 0 counts as 1.
  std::size_t threads = 1;
  /// The policy (index into RunConfig::policies) whose timeline is recorded, and the recorder.
  std::optional<std::size_t> timeline_of;
  observe::TimelineRecorder* timeline = nullptr;
  /// Called with every policy's timeline. `timeline_of`'s policy is recorded in both windows.
  TimelineSink timelines = nullptr;
  /// Length of the intervals of PolicyResult::usage; 0: usage is not recorded. Other results do not
  /// depend on it.
  Duration usage_interval{};
  ProgressText progress;
  /// If another thread sets it to true, the run ends with a fault soon after. Null: never.
  const std::atomic<bool>* stop = nullptr;
  WhenStopped when_stopped = WhenStopped::kFault;
  SimulatedTime* time = nullptr;  ///< null: not watched
  Size size = Size::kChecked;
  /// Shared baselines (parts of this run alone), some of which other runs may have simulated. They
  /// change no result.
  SharedBaselines baselines;
};

/// Reads traces, device and filler programs of a config; `threads` read the ranks of the training
/// job. Every fault names its file.
[[nodiscard]] CheckedResult<LoadedRun> load_run(const RunConfig& config,
                                                const std::string& device_folder,
                                                const ProgressText& progress = {},
                                                std::size_t threads = 1);

/// Runs the config's baselines and policies. The same inputs give the same report.
[[nodiscard]] Result<observe::RunReport> run_policies(const LoadedRun& loaded,
                                                      const policy::Registry& registry,
                                                      const RunOptions& options);

}  // namespace bubblesim::run
