// A run's timeline around one iteration, small enough for a page: the run is simulated again with
// its timeline recorded.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/report/page_parts.hpp"
#include "sim/store/run_record.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::report {

/// Rows are GPUs; lanes are tracks of timeline_to_chrome(), such as "training rank 0: device".
struct ReportTimeline {
  std::string key;
  std::string policy;
  std::int64_t start_ns = 0;      ///< of the window, since the start of the run
  std::int64_t iteration_ns = 0;  ///< length of the iteration in its middle; 0: none found
  TimelineChart chart;
  std::uint64_t slices = 0;       ///< in the window; each is shown, joined or left out
  std::uint64_t joined = 0;       ///< drawn as part of a neighbour
  std::uint64_t gpus_left_out = 0;
  std::uint64_t slices_left_out = 0;  ///< on GPUs that were left out
  bool same_result = false;       ///< the rerun gave the stored rows
};

struct TimelineOptions {
  std::size_t gpus = 4;         ///< number shown, from the first on
  std::size_t spans = 6000;     ///< of all lanes together; beyond this, more spans are joined
  /// Neighbours whose gaps and lengths are below this share of the window are joined.
  double resolution = 0.0005;
};

/// Fills in rows and counts from the slices that touch the window of timeline.start_ns and
/// chart.length, cut to it.
void add_lanes(const traces::ChromeTrace& trace, const TimelineOptions& options,
               ReportTimeline& timeline);

/// Runs the record's config again, for its policy of that index. Faults: those of the config and of
/// its files, which may be gone; a run that failed.
[[nodiscard]] CheckedResult<ReportTimeline> record_timeline(const store::RunRecord& record,
                                                            std::uint32_t policy,
                                                            const policy::Registry& registry,
                                                            const std::string& device_folder);

}  // namespace bubblesim::report
