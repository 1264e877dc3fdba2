#include "sim/report/view/trace_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/inspect/labels.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::report {
namespace {

using traces::TimelineBlock;
using traces::TimelinePlan;

ChartRow row_of(TimelineBlock& block, const traces::RankTrace& rank, ChartNames& names) {
  ChartRow row;
  row.label = fmt::format("rank {}", block.rank);
  row.note = "bubbles " + traces::percent(block.use.bubble(), block.use.length);
  for (const traces::Iteration& iteration : block.iterations.all) {
    if (!block.iterations.marked) break;
    const TraceTime from = std::max(iteration.span.begin, block.view.begin);
    const TraceTime to = std::min(iteration.span.end, block.view.end);
    if (from >= to) continue;
    row.marks.push_back({from - block.view.begin, to - from,
                         iteration.number < 0 ? std::string("iteration")
                                              : fmt::format("iteration {}", iteration.number)});
  }
  for (traces::TimelineLane& lane : block.lanes) {
    const bool thick = lane.label == "kernels" || lane.label == "bubbles";
    ChartLane& drawn = row.lanes.emplace_back();
    drawn.label = lane.label;
    drawn.form = thick ? LaneForm::kThick : LaneForm::kThin;
    drawn.spans = std::move(lane.spans);
    for (traces::ShownSpan& span : drawn.spans) {
      if (span.name != traces::kNone) span.name = names.place_of(rank.names[NameId{span.name}]);
    }
  }
  return row;
}

/// One column a cause that some rank's share shows, with one digit after the point.
bool is_shown(const TimelinePlan& plan, std::size_t cause) {
  return std::ranges::any_of(plan.blocks, [&](const TimelineBlock& block) {
    return traces::fraction(block.use.by_cause[cause], block.use.length) >= 0.0005;
  });
}

ViewTable table_of(const TimelinePlan& plan) {
  ViewTable table;
  table.caption = "Each rank's time in the window";
  table.columns = {{"rank", "", true}, {"busy", "%", true}, {"bubbles", "%", true}};
  std::vector<std::size_t> causes;
  for (std::size_t i = 0; i < traces::kBubbleCauseCount; ++i) {
    if (!is_shown(plan, i)) continue;
    causes.push_back(i);
    const auto cause = static_cast<traces::BubbleCause>(i);
    table.columns.push_back({std::string(traces::bubble_cause_label(cause)), "%", true});
  }
  for (const TimelineBlock& block : plan.blocks) {
    const auto share = [&](Duration part) {
      return fmt::format("{:.1f}", 100 * traces::fraction(part, block.use.length));
    };
    std::vector<std::string> cells{std::to_string(block.rank), share(block.use.busy),
                                   share(block.use.bubble())};
    for (const std::size_t cause : causes) cells.push_back(share(block.use.by_cause[cause]));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> notes_of(const traces::JobTrace& job, const TimelinePlan& plan) {
  if (plan.blocks.empty()) return {"No device operations to draw."};
  std::vector<std::string> notes;
  std::size_t operations = 0;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) operations += job.ranks[i].device_ops.size();
  notes.push_back(fmt::format("{}, {} ranks, {} device operations in {}.",
                              traces::device_label(job.ranks.front().device), job.ranks.size(),
                              operations, traces::short_duration(plan.length)));
  if (plan.blocks.size() < job.ranks.size()) {
    notes.push_back(fmt::format("The first {} ranks are shown.", plan.blocks.size()));
  }
  if (plan.origin == traces::TimelineOrigin::kEachRank) {
    notes.push_back("Clocks are not aligned: each rank begins with its own first operation.");
  }
  return notes;
}

}  // namespace

TimelineView trace_view(const traces::JobTrace& job, const std::string& title,
                        std::size_t most_ranks) {
  TimelinePlan plan = traces::plan_timeline(job, most_ranks);
  ViewSection section;
  section.title = "Timeline";
  TimelineChart chart;
  chart.length = plan.length;
  ChartNames names(chart);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    chart.rows.push_back(row_of(plan.blocks[i], job.ranks[i], names));
  }
  limit_spans(chart, kTraceSpans);
  section.notes = notes_of(job, plan);
  section.table = table_of(plan);
  if (!plan.blocks.empty()) section.charts.push_back({"", std::move(chart)});
  note_joined(section.charts, section.notes);
  return {title, {std::move(section)}};
}

}  // namespace bubblesim::report
