#include "sim/report/report_timeline.hpp"

#include <algorithm>
#include <optional>

#include "sim/observe/result_rows.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/timeline_export.hpp"

namespace bubblesim::report {
namespace {

using traces::ChromeSlice;
using traces::ChromeTrace;

// Shown before and after the iteration, as parts of its length.
constexpr double kMargin = 0.15;
// Recorded before the end of the warm-up and after it, in mean iterations: the first iteration
// that begins after the warm-up lies in it, and so do requests that began before.
constexpr int kIterationsBefore = 3;
constexpr int kIterationsAfter = 6;

traces::Paint paint_of(std::string_view category) {
  return traces::paint_named(category).value_or(traces::Paint::kPhase);
}

class Lanes {
 public:
  Lanes(const ChromeTrace& trace, const TimelineOptions& options, ReportTimeline& timeline)
      : trace_(trace), options_(options), timeline_(timeline), by_track_(trace.tracks.size()) {}

  void add() {
    const std::int64_t end = timeline_.start_ns + to_ns(timeline_.chart.length);
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
    limit_spans(timeline_.chart, options_.spans,
                scale(timeline_.chart.length, options_.resolution));
    timeline_.joined = joined_operations(timeline_.chart);
  }

 private:
  [[nodiscard]] traces::ShownSpan span_of(const ChromeSlice& slice) {
    const std::int64_t from = std::max<std::int64_t>(0, slice.start_ns - timeline_.start_ns);
    const std::int64_t to = std::min(slice.start_ns + slice.duration_ns - timeline_.start_ns,
                                     to_ns(timeline_.chart.length));
    return {Duration{from}, Duration{to - from}, names_.place_of(slice.name),
            paint_of(slice.category), 1, Duration{to - from}};
  }

  void add_lane(std::size_t track) {
    std::vector<ChromeSlice>& slices = by_track_[track];
    if (slices.empty()) return;
    std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.start_ns < b.start_ns;
    });
    const std::string& gpu = trace_.processes[trace_.tracks[track].process];
    std::vector<ChartRow>& rows = timeline_.chart.rows;
    if (rows.empty() || rows.back().label != gpu) rows.push_back({gpu, {}, {}, {}});
    ChartLane& lane = rows.back().lanes.emplace_back();
    lane.label = trace_.tracks[track].name;
    lane.form = LaneForm::kStacked;
    for (const ChromeSlice& slice : slices) lane.spans.push_back(span_of(slice));
  }

  const ChromeTrace& trace_;
  const TimelineOptions& options_;
  ReportTimeline& timeline_;
  ChartNames names_{timeline_.chart};
  std::vector<std::vector<ChromeSlice>> by_track_;
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

Duration mean_iteration(const store::RunRecord& record, std::uint32_t policy) {
  for (const observe::ResultRow& row : record.rows) {
    const double ms = store::number_in(row, "training_iteration_mean_ms").value_or(0);
    if (row.policy == policy && ms > 0) return scale(std::chrono::milliseconds(1), ms);
  }
  return std::chrono::seconds(1);
}

void choose_window(const ChromeTrace& trace, Duration warmup, Duration mean,
                   ReportTimeline& timeline) {
  const auto iteration = iteration_after(trace, warmup);
  timeline.start_ns = to_ns(warmup);
  timeline.chart.length = mean;
  if (!iteration) return;
  const auto margin =
      static_cast<std::int64_t>(kMargin * static_cast<double>(iteration->duration_ns));
  timeline.iteration_ns = iteration->duration_ns;
  timeline.start_ns = std::max<std::int64_t>(0, iteration->start_ns - margin);
  timeline.chart.length = Duration{iteration->start_ns + iteration->duration_ns + margin -
                                   timeline.start_ns};
}

bool same_rows(const store::RunRecord& record, const observe::RunReport& report) {
  const std::vector<observe::ResultRow> rows = observe::result_rows(report);
  return std::equal(rows.begin(), rows.end(), record.rows.begin(), record.rows.end(),
                    [](const auto& a, const auto& b) { return a.cells == b.cells; });
}

}  // namespace

void add_lanes(const ChromeTrace& trace, const TimelineOptions& options,
               ReportTimeline& timeline) {
  Lanes(trace, options, timeline).add();
}

CheckedResult<ReportTimeline> record_timeline(const store::RunRecord& record, std::uint32_t policy,
                                              const policy::Registry& registry,
                                              const std::string& device_folder) {
  const std::string place = "run " + record.run.key;
  if (record.status == store::RunStatus::kFailed) {
    return fail(place, {}, "it failed: there is no timeline of it");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const run::RunConfig config,
                             run::parse_run_config(record.run.config, place, registry));
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, run::load_run(config, device_folder));
  const Duration mean = mean_iteration(record, policy);
  observe::TimelineRecorder recorder;
  recorder.set_window({mean * kIterationsBefore, mean * kIterationsAfter});
  run::RunOptions run_options;
  run_options.timeline_of = policy;
  run_options.timeline = &recorder;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, run::run_policies(loaded, registry, run_options));
  ReportTimeline timeline;
  timeline.key = record.run.key;
  timeline.policy = config.policies.at(policy).name;
  timeline.same_result = same_rows(record, report);
  const ChromeTrace trace = run::timeline_to_chrome(recorder);
  choose_window(trace, recorder.settled() - kSimStart, mean, timeline);
  add_lanes(trace, {}, timeline);
  return timeline;
}

}  // namespace bubblesim::report
