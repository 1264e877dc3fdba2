#include "sim/report/view/run_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/iterations/intervals.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::report {
namespace {

using observe::Slice;
using observe::SliceKind;
using traces::Interval;
using traces::Intervals;
using traces::Paint;

// Shown: so many mean iterations of the job alone.
constexpr double kIterationsShown = 2.2;
// Jobs of more ranks have the table alone: their timelines cost a run its speed.
constexpr std::size_t kMostRanks = 64;
constexpr ClientId kTrainingClient{0};

bool is_iteration(const observe::TimelineRecorder& timeline, const Slice& slice) {
  return slice.client == kTrainingClient && slice.kind == SliceKind::kPhase &&
         timeline.text(slice.name) == "iteration";
}

/// When the first GPU begins its first iteration after the warm-up; else, the warm-up's end.
SimTime first_iteration(const observe::TimelineRecorder& timeline, SimTime settled,
                        SimTime latest) {
  std::optional<SimTime> first;
  for (const Slice& slice : timeline.slices()) {
    if (slice.gpu != GpuId{} || !is_iteration(timeline, slice)) continue;
    for (const SimTime at : {slice.start, slice.end}) {
      if (at >= settled && at <= latest) first = std::min(first.value_or(at), at);
    }
  }
  return first.value_or(settled);
}

bool is_peer(std::string_view name) {
  const traces::CollectiveKind kind = traces::kind_of_kernel(name);
  return kind == traces::CollectiveKind::kSend || kind == traces::CollectiveKind::kRecv ||
         kind == traces::CollectiveKind::kSendRecv;
}

/// Slices of one GPU as lanes, from `zero` on.
class GpuLanes {
 public:
  GpuLanes(const observe::TimelineRecorder& timeline, GpuId gpu, SimTime zero, Duration length,
           ChartNames& names)
      : timeline_(timeline), gpu_(gpu), zero_(zero), length_(length), names_(names) {
    for (const Slice& slice : timeline.slices()) {
      if (slice.kind == SliceKind::kCollective) collectives_.insert(slice.name);
    }
    for (const Slice& slice : timeline.slices()) {
      if (slice.gpu == gpu_) add(slice);
    }
    add_bubbles();
    for (ChartLane* lane : {&training_, &communication_, &filler_}) {
      std::stable_sort(lane->spans.begin(), lane->spans.end(),
                       [](const auto& a, const auto& b) { return a.start < b.start; });
    }
    std::sort(marks_.begin(), marks_.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
  }

  std::vector<ChartMark> marks() { return std::move(marks_); }
  std::vector<ChartLane> lanes() {
    return {std::move(training_), std::move(communication_), std::move(bubbles_),
            std::move(filler_)};
  }

 private:
  void add(const Slice& slice) {
    const Duration from = std::max(Duration{}, slice.start - zero_);
    const Duration to = std::min(length_, slice.end - zero_);
    if (is_iteration(timeline_, slice)) {
      if (from < to) marks_.push_back({from, to - from, "iteration"});
      return;
    }
    if (from >= to || slice.kind > SliceKind::kPaused) return;
    if (slice.client != kTrainingClient) {
      const bool paused = slice.kind == SliceKind::kPaused;
      put(filler_, slice, from, to, paused ? Paint::kPaused : Paint::kFiller);
    } else if (collectives_.contains(slice.name)) {
      add_collective(slice, from, to);
    } else {
      own_.push_back({TraceTime{from}, TraceTime{to}});
      put(training_, slice, from, to, work_paint(slice.kind));
    }
  }

  void add_collective(const Slice& slice, Duration from, Duration to) {
    const bool peer = is_peer(timeline_.text(slice.name));
    (peer ? peers_ : together_).push_back({TraceTime{from}, TraceTime{to}});
    const bool paused = slice.kind == SliceKind::kPaused;
    put(communication_, slice, from, to,
        paused ? Paint::kPaused : peer ? Paint::kPeer : Paint::kCollective);
  }

  static Paint work_paint(SliceKind kind) {
    switch (kind) {
      case SliceKind::kCopy: return Paint::kCopy;
      case SliceKind::kMemset: return Paint::kMemset;
      case SliceKind::kPaused: return Paint::kPaused;
      default: return Paint::kCompute;
    }
  }

  void put(ChartLane& lane, const Slice& slice, Duration from, Duration to, Paint paint) {
    lane.spans.push_back({from, to - from, names_.place_of(timeline_.text(slice.name)), paint, 1,
                          to - from});
  }

  /// What observe::ActivityMeter calls a bubble; its cause "collective" is told apart by what
  /// training waits for.
  void add_bubbles() {
    const Intervals together = traces::unite(std::move(together_));
    const Intervals peers = traces::unite(std::move(peers_));
    const Intervals bubbles = traces::gaps_within(traces::unite(std::move(own_)),
                                                  {TraceTime{}, TraceTime{length_}});
    const Intervals rest = traces::subtract(bubbles, together);
    put_bubbles(traces::intersect(bubbles, together),
                traces::paint_of(traces::BubbleCause::kCollectiveWait));
    put_bubbles(traces::intersect(rest, peers),
                traces::paint_of(traces::BubbleCause::kPeerWait));
    put_bubbles(traces::subtract(rest, peers), Paint::kIdle);
    std::sort(bubbles_.spans.begin(), bubbles_.spans.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
  }

  void put_bubbles(const Intervals& spans, Paint paint) {
    for (const Interval& span : spans) {
      bubbles_.spans.push_back({span.begin - TraceTime{}, span.length(), traces::kNone, paint, 1,
                                span.length()});
    }
  }

  const observe::TimelineRecorder& timeline_;
  GpuId gpu_;
  SimTime zero_;
  Duration length_;
  ChartNames& names_;
  std::set<NameId> collectives_;
  Intervals own_;       ///< training's operations that are no collectives
  Intervals together_;  ///< its collectives but for sends and receives
  Intervals peers_;     ///< its sends and receives
  std::vector<ChartMark> marks_;
  ChartLane training_{"training", LaneForm::kThick, {}};
  ChartLane communication_{"communication", LaneForm::kThin, {}};
  ChartLane bubbles_{"bubbles", LaneForm::kThick, {}};
  ChartLane filler_{"filler", LaneForm::kThick, {}};
};

std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "";
}

std::string p95_text(const observe::FillerResult& filler) {
  if (filler.overloaded) return "overloaded";
  const auto latency = filler.latency.summary();
  if (!latency) return "";
  return fmt::format("{}{:.1f}", latency->p95.bound == observe::Bound::kLower ? ">" : "",
                     to_seconds(latency->p95.value) * 1e3);
}

ViewTable table_of(const observe::RunReport& report) {
  ViewTable table;
  table.caption = "What each policy keeps and gains";
  table.columns = {{"policy", "", false},         {"filler", "", false},
                   {"training kept", "1: alone", true}, {"requests", "1/s", true},
                   {"filler gained", "1: own GPU", true}, {"p95", "ms", true},
                   {"recovered", "%", true}};
  for (const observe::PolicyResult& policy : report.policies) {
    const std::string kept = ratio(policy.training.normalised_to_alone);
    const std::string recovered =
        fmt::format("{:.1f}", 100 * observe::recovered_over_gpus(policy.gpus));
    for (std::size_t i = 0; i < policy.fillers.size(); ++i) {
      const observe::FillerResult& filler = policy.fillers[i];
      table.rows.push_back({observe::row_label(report, policy, i), filler.name, kept,
                            fmt::format("{:.1f}", filler.requests_per_s),
                            ratio(filler.normalised_to_own_gpu), p95_text(filler), recovered});
    }
    if (policy.fillers.empty()) {
      table.rows.push_back(
          {observe::row_label(report, policy, {}), "", kept, "", "", "", recovered});
    }
  }
  return table;
}

std::string note_of(const observe::PolicyResult& policy) {
  std::string note = "keeps " + ratio(policy.training.normalised_to_alone);
  double requests = 0;
  for (const observe::FillerResult& filler : policy.fillers) requests += filler.requests_per_s;
  if (!policy.fillers.empty()) note += fmt::format(", serves {:.0f}/s", requests);
  return note;
}

}  // namespace

run::TimelineSink RunView::sink() {
  if (loaded_.training->ranks.size() > kMostRanks) return nullptr;
  return [this](std::size_t policy, const observe::TimelineRecorder& timeline,
                Duration iteration) { keep(policy, timeline, iteration); };
}

void RunView::keep(std::size_t policy, const observe::TimelineRecorder& timeline,
                   Duration iteration) {
  PolicyTimeline kept;
  kept.policy = policy;
  kept.length = scale(iteration, kIterationsShown);
  kept.cut = timeline.is_cut();
  const SimTime settled = timeline.settled();
  const SimTime latest = settled + run::kSinkIterationsAfter * iteration - kept.length;
  const SimTime zero = first_iteration(timeline, settled, latest);
  ChartNames names(kept.names);
  const auto ranks = static_cast<std::uint32_t>(loaded_.training->ranks.size());
  for (std::uint32_t gpu = 0; gpu < std::min<std::uint32_t>(ranks, kViewGpus); ++gpu) {
    GpuLanes lanes(timeline, GpuId{gpu}, zero, kept.length, names);
    kept.gpus.push_back({lanes.marks(), lanes.lanes()});
  }
  const std::lock_guard lock(mutex_);
  timelines_.push_back(std::move(kept));
}

TimelineChart RunView::chart_of(std::size_t gpu, const observe::RunReport& report) {
  TimelineChart chart;
  chart.length = timelines_.front().length;
  ChartNames names(chart);
  for (std::size_t i = 0; i < timelines_.size() && i < report.policies.size(); ++i) {
    PolicyTimeline& timeline = timelines_[i];
    const observe::PolicyResult& policy = report.policies[i];
    ChartRow row{observe::row_label(report, policy, {}), note_of(policy),
                 std::move(timeline.gpus[gpu].marks),
                 std::move(timeline.gpus[gpu].lanes)};
    for (ChartLane& lane : row.lanes) {
      for (traces::ShownSpan& span : lane.spans) {
        if (span.name == traces::kNone) continue;
        span.name = names.place_of(timeline.names.names[span.name]);
      }
    }
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

ViewSection RunView::section(const observe::RunReport& report) {
  ViewSection section;
  section.title = report.config;
  section.table = table_of(report);
  section.notes.push_back(fmt::format(
      "{}, {} ranks, seed {}. Alone, an iteration takes {}.", report.device, report.ranks,
      report.seed, traces::short_duration(report.baseline.training_mean_iteration)));
  std::istringstream known(observe::report_notes({&report, 1}, observe::Notes::kFew));
  for (std::string line; std::getline(known, line);) {
    if (line.starts_with("* ") || line.starts_with("! ")) section.notes.push_back(line);
  }
  // Policies end in any order on several threads; results are in that of the config.
  std::sort(timelines_.begin(), timelines_.end(),
            [](const auto& a, const auto& b) { return a.policy < b.policy; });
  const std::size_t gpus = timelines_.empty() ? 0 : timelines_.front().gpus.size();
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    section.charts.push_back({fmt::format("GPU {}", gpu), chart_of(gpu, report)});
    limit_spans(section.charts.back().chart, kRunSpans / gpus);
  }
  add_notes(section, report);
  return section;
}

void RunView::add_notes(ViewSection& section, const observe::RunReport& report) const {
  if (section.charts.empty()) return;
  section.notes.emplace_back(
      "Each row begins with the first iteration after the warm-up; a bubble is time in which "
      "no computing kernel of training runs.");
  if (section.charts.size() < report.ranks) {
    section.notes.push_back(fmt::format("The first {} GPUs are shown.", section.charts.size()));
  }
  note_joined(section.charts, section.notes);
  if (std::ranges::any_of(timelines_, [](const auto& timeline) { return timeline.cut; })) {
    section.notes.emplace_back("Some rows end early: their timeline was too long to be kept.");
  }
}

}  // namespace bubblesim::report
