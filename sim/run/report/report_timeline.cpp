#include "sim/run/report/report_timeline.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/observe/result_rows.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"

namespace bubblesim::run {
namespace {

using traces::ChromeSlice;
using traces::ChromeTrace;

// Shown before and after the iteration, as parts of its length.
constexpr double kMargin = 0.15;
// Recorded before the end of the warm-up and after it, in mean iterations: the first iteration
// that begins after the warm-up lies in it, and so do requests that began before.
constexpr int kIterationsBefore = 3;
constexpr int kIterationsAfter = 6;

std::uint32_t place_of(std::vector<std::string>& list,
                       std::map<std::string_view, std::uint32_t>& places, std::string_view text) {
  const auto [place, fresh] = places.try_emplace(text, static_cast<std::uint32_t>(list.size()));
  if (fresh) list.emplace_back(text);
  return place->second;
}

class Lanes {
 public:
  Lanes(const ChromeTrace& trace, const TimelineOptions& options, ReportTimeline& timeline)
      : trace_(trace), options_(options), timeline_(timeline), by_track_(trace.tracks.size()) {}

  void add() {
    const std::int64_t end = timeline_.start_ns + timeline_.length_ns;
    for (const ChromeSlice& slice : trace_.slices) {
      if (slice.start_ns + slice.duration_ns <= timeline_.start_ns || slice.start_ns >= end) {
        continue;
      }
      ++timeline_.slices;
      if (trace_.tracks[slice.track].process >= options_.gpus) {
        ++timeline_.slices_left_out;
      } else {
        by_track_[slice.track].push_back(slice);
      }
    }
    timeline_.gpus_left_out =
        trace_.processes.size() - std::min(trace_.processes.size(), options_.gpus);
    for (std::size_t track = 0; track < by_track_.size(); ++track) add_lane(track);
  }

 private:
  [[nodiscard]] TimelineSpan span_of(const ChromeSlice& slice) {
    TimelineSpan span;
    const std::int64_t end = std::min(slice.start_ns + slice.duration_ns - timeline_.start_ns,
                                      timeline_.length_ns);
    span.start_ns = std::max<std::int64_t>(0, slice.start_ns - timeline_.start_ns);
    span.length_ns = end - span.start_ns;
    span.kind = place_of(timeline_.kinds, kinds_, slice.category);
    return span;
  }

  /// Is the next span too close to the last, and as short, to be told apart?
  [[nodiscard]] bool joins(const TimelineSpan& last, const TimelineSpan& next) const {
    const auto least = static_cast<std::int64_t>(
        static_cast<double>(timeline_.length_ns) * options_.resolution);
    const std::int64_t gap = next.start_ns - (last.start_ns + last.length_ns);
    return last.kind == next.kind && gap >= 0 && gap < least && next.length_ns < least &&
           (last.slices > 1 || last.length_ns < least);
  }

  void add_lane(std::size_t track) {
    std::vector<ChromeSlice>& slices = by_track_[track];
    if (slices.empty()) return;
    std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.start_ns < b.start_ns;
    });
    TimelineLane& lane = timeline_.lanes.emplace_back();
    lane.gpu = trace_.processes[trace_.tracks[track].process];
    lane.track = trace_.tracks[track].name;
    std::int64_t longest = 0;  // of what the last span joins
    for (const ChromeSlice& slice : slices) {
      TimelineSpan span = span_of(slice);
      if (!lane.spans.empty() && joins(lane.spans.back(), span)) {
        TimelineSpan& last = lane.spans.back();
        last.length_ns = span.start_ns + span.length_ns - last.start_ns;
        ++last.slices;
        ++timeline_.joined;
        if (slice.duration_ns > longest) {
          longest = slice.duration_ns;
          last.name = place_of(timeline_.names, names_, slice.name);
        }
        continue;
      }
      if (shown_ >= options_.spans) {
        ++timeline_.slices_left_out;
        continue;
      }
      ++shown_;
      longest = slice.duration_ns;
      span.name = place_of(timeline_.names, names_, slice.name);
      lane.spans.push_back(span);
    }
  }

  const ChromeTrace& trace_;
  const TimelineOptions& options_;
  ReportTimeline& timeline_;
  std::vector<std::vector<ChromeSlice>> by_track_;
  std::map<std::string_view, std::uint32_t> names_;
  std::map<std::string_view, std::uint32_t> kinds_;
  std::size_t shown_ = 0;
};

/// The first iteration of the first rank that begins after the warm-up.
std::optional<ChromeSlice> iteration_after(const ChromeTrace& trace, Duration warmup) {
  std::optional<ChromeSlice> found;
  for (const ChromeSlice& slice : trace.slices) {
    if (slice.name != "iteration" || trace.tracks[slice.track].process != 0) continue;
    if (slice.start_ns < to_ns(warmup)) continue;
    if (!found || slice.start_ns < found->start_ns) found = slice;
  }
  return found;
}

Duration mean_iteration(const RunRecord& record, std::uint32_t policy) {
  static const std::size_t column = [] {
    std::size_t place = 0;
    while (observe::result_columns()[place].name != "training_iteration_mean_ms") ++place;
    return place;
  }();
  for (const observe::ResultRow& row : record.rows) {
    const auto* ms = std::get_if<double>(&row.cells[column]);
    if (row.policy == policy && ms != nullptr && *ms > 0) {
      return scale(std::chrono::milliseconds(1), *ms);
    }
  }
  return std::chrono::seconds(1);
}

void choose_window(const ChromeTrace& trace, Duration warmup, Duration mean,
                   ReportTimeline& timeline) {
  const auto iteration = iteration_after(trace, warmup);
  timeline.start_ns = to_ns(warmup);
  timeline.length_ns = to_ns(mean);
  if (!iteration) return;
  const auto margin =
      static_cast<std::int64_t>(kMargin * static_cast<double>(iteration->duration_ns));
  timeline.iteration_ns = iteration->duration_ns;
  timeline.start_ns = std::max<std::int64_t>(0, iteration->start_ns - margin);
  timeline.length_ns = iteration->start_ns + iteration->duration_ns + margin - timeline.start_ns;
}

bool same_rows(const RunRecord& record, const observe::RunReport& report) {
  const std::vector<observe::ResultRow> rows = observe::result_rows(report);
  return std::equal(rows.begin(), rows.end(), record.rows.begin(), record.rows.end(),
                    [](const auto& a, const auto& b) { return a.cells == b.cells; });
}

}  // namespace

void add_lanes(const ChromeTrace& trace, const TimelineOptions& options,
               ReportTimeline& timeline) {
  Lanes(trace, options, timeline).add();
}

CheckedResult<ReportTimeline> record_timeline(const RunRecord& record, std::uint32_t policy,
                                              const policy::Registry& registry,
                                              const std::string& device_folder,
                                              const TimelineOptions& options) {
  const std::string place = "run " + record.run.key;
  if (record.status == RunStatus::kFailed) {
    return tl::unexpected<Errors>(Errors{{place, {}, "it failed: there is no timeline of it"}});
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const RunConfig config,
                             parse_run_config(record.run.config, place, registry));
  BUBBLESIM_ASSIGN_OR_RETURN(const LoadedRun loaded, load_run(config, device_folder));
  const Duration mean = mean_iteration(record, policy);
  observe::TimelineRecorder recorder;
  recorder.set_window(
      std::max(kSimStart, kSimStart + config.warmup - mean * kIterationsBefore),
      kSimStart + config.warmup + mean * kIterationsAfter);
  RunOptions run_options;
  run_options.timeline_of = policy;
  run_options.timeline = &recorder;
  const auto report = run_policies(loaded, registry, run_options);
  if (!report) return tl::unexpected<Errors>(Errors{report.error()});
  ReportTimeline timeline;
  timeline.key = record.run.key;
  timeline.policy = config.policies.at(policy).name;
  timeline.same_result = same_rows(record, *report);
  const ChromeTrace trace = timeline_to_chrome(recorder);
  choose_window(trace, config.warmup, mean, timeline);
  add_lanes(trace, options, timeline);
  return timeline;
}

}  // namespace bubblesim::run
