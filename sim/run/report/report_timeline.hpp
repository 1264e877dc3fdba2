// What happened in a run around one iteration, small enough for a page: the run is simulated
// again with its timeline recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/store/run_record.hpp"
#include "traces/export/chrome_trace.hpp"

namespace bubblesim::run {

/// One slice, or several that would not be told apart.
struct TimelineSpan {
  std::int64_t start_ns = 0;   ///< since the start of the window
  std::int64_t length_ns = 0;
  std::uint32_t name = 0;      ///< of the longest
  std::uint32_t kind = 0;
  std::uint32_t slices = 1;    ///< drawn as this one
};

/// A track of timeline_to_chrome(): what a client does on a GPU in one respect.
struct TimelineLane {
  std::string gpu;
  std::string track;           ///< "training: device"
  std::vector<TimelineSpan> spans;  ///< by start
};

struct ReportTimeline {
  std::string key;
  std::string policy;
  std::int64_t start_ns = 0;      ///< of the window, since the start of the run
  std::int64_t length_ns = 0;
  std::int64_t iteration_ns = 0;  ///< length of the iteration around which it lies; 0: none found
  std::vector<std::string> names;
  std::vector<std::string> kinds;     ///< of slice_kind_name()
  std::vector<TimelineLane> lanes;
  std::uint64_t slices = 0;       ///< in the window; each is shown, joined or left out
  std::uint64_t joined = 0;       ///< drawn as part of a neighbour of their kind
  std::uint64_t gpus_left_out = 0;
  std::uint64_t slices_left_out = 0;  ///< of those GPUs, and beyond the limit
  bool same_result = false;       ///< the rows are those that were stored
};

struct TimelineOptions {
  std::size_t gpus = 4;         ///< shown, from the first on
  std::size_t spans = 6000;     ///< of all lanes together
  /// Neighbours of one kind with gaps and lengths below this part of the window are joined.
  double resolution = 0.0005;
};

/// Fills in names, kinds, lanes and counts: of the slices that touch [timeline.start_ns,
/// + timeline.length_ns], cut to it.
void add_lanes(const traces::ChromeTrace& trace, const TimelineOptions& options,
               ReportTimeline& timeline);

/// Runs the record's config again, for its policy of that index. Faults: those of the config and
/// of the files that it names, which may have gone; a run that failed.
[[nodiscard]] CheckedResult<ReportTimeline> record_timeline(const RunRecord& record,
                                                            std::uint32_t policy,
                                                            const policy::Registry& registry,
                                                            const std::string& device_folder,
                                                            const TimelineOptions& options);

}  // namespace bubblesim::run
