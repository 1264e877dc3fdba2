// A view of a run: for every GPU a row for each policy, from the first iteration after the warm-up
// on, with training, its bubbles and the fillers; and the figures of each policy.
#pragma once

#include <mutex>
#include <vector>

#include "sim/observe/run_result.hpp"
#include "sim/report/view/timeline_view.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::report {

/// GPUs whose timelines are kept, from the first on.
inline constexpr std::size_t kViewGpus = 8;

/// Collects the policies' timelines while a run goes on. `loaded` outlives it.
class RunView {
 public:
  explicit RunView(const run::LoadedRun& loaded) : loaded_(loaded) {}

  /// The function for RunOptions::timelines; refers to this object.
  [[nodiscard]] run::TimelineSink sink();

  /// Called once, after the run. A policy without a timeline appears in the table only.
  [[nodiscard]] ViewSection section(const observe::RunReport& report);

 private:
  /// One policy's timeline on one GPU.
  struct GpuTimeline {
    std::vector<ChartMark> marks;
    std::vector<ChartLane> lanes;  ///< names are those of the PolicyTimeline
  };
  struct PolicyTimeline {
    std::size_t policy = 0;
    Duration length{};
    bool cut = false;      ///< slices were dropped
    TimelineChart names;  ///< of the lanes; has no rows
    std::vector<GpuTimeline> gpus;
  };

  void keep(std::size_t policy, const observe::TimelineRecorder& timeline, Duration iteration);
  /// Makes the chart of one GPU; takes its lanes out of timelines_.
  [[nodiscard]] TimelineChart chart_of(std::size_t gpu, const observe::RunReport& report);
  void add_notes(ViewSection& section, const observe::RunReport& report) const;

  const run::LoadedRun& loaded_;
  std::mutex mutex_;  ///< for the members below: policies run on several threads
  std::vector<PolicyTimeline> timelines_;
};

}  // namespace bubblesim::report
