#include "sim/report/view/timeline_view.hpp"

#include <algorithm>
#include <bubblesim_view_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/observe/report.hpp"
#include "sim/text/escaped_text.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::report {
namespace {

constexpr const char* kFormat = "bubblesim.view/1";

Json table_json(const ViewTable& table) {
  Json columns = list_json(table.columns, [](const ViewColumn& column) -> Json {
    return {{"title", column.title}, {"unit", column.unit}, {"number", column.number}};
  });
  Json rows = list_json(table.rows, [](const auto& cells) -> Json { return {{"cells", cells}}; });
  return {{"caption", table.caption}, {"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Json section_json(const ViewSection& section, ChartLevels levels) {
  Json charts = list_json(section.charts, [&](const ViewChart& chart) -> Json {
    return {{"label", chart.label}, {"chart", chart_json(chart.chart, levels)}};
  });
  return {{"title", section.title},
          {"notes", section.notes},
          {"charts", std::move(charts)},
          {"table", table_json(section.table)}};
}

Json view_json(const TimelineView& view, ChartLevels levels) {
  Json sections = list_json(view.sections, [&](const ViewSection& section) {
    return section_json(section, levels);
  });
  return {{"format", kFormat}, {"title", view.title}, {"sections", std::move(sections)}};
}

ViewTable read_table(ObjectReader reader) {
  ViewTable table;
  table.caption = reader.text("caption");
  for (ObjectReader& column : reader.children("columns")) {
    table.columns.push_back({column.text("title"), column.text("unit"), column.flag("number")});
  }
  for (ObjectReader& row : reader.children("rows")) {
    table.rows.push_back(row.texts("cells"));
    if (table.rows.back().empty() || table.rows.back().size() != table.columns.size()) {
      row.fault("cells", "expected a cell for each column");
    }
  }
  return table;
}

ViewSection read_section(ObjectReader& reader) {
  ViewSection section;
  section.title = reader.text("title");
  section.notes = reader.texts("notes");
  for (ObjectReader& part : reader.children("charts")) {
    ViewChart& chart = section.charts.emplace_back();
    chart.label = part.text("label");
    ObjectReader inner = part.child("chart");
    chart.chart = read_chart(inner);
  }
  section.table = read_table(reader.child("table"));
  return section;
}

const std::string& label_of(const ChartRow& row) { return row.label; }
const std::string& label_of(const std::vector<std::string>& cells) { return cells.front(); }

/// The rows of these names, name by name.
template <class Rows>
Result<void> select_rows(Rows& rows, const std::vector<std::string>& names) {
  Rows selected;
  std::vector<std::string> labels;
  for (const auto& row : rows) labels.emplace_back(observe::without_marks(label_of(row)));
  for (const std::string& name : names) {
    const std::size_t before = selected.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (labels[i] == name) selected.push_back(rows[i]);
    }
    if (selected.size() == before) {
      return fail("--policy", {}, unknown_name_message("policy", name, labels));
    }
  }
  rows = std::move(selected);
  return {};
}

}  // namespace

void note_joined(const std::vector<ViewChart>& charts, std::vector<std::string>& notes) {
  const auto note = [&](const char* what, Duration TimelineChart::*resolution) {
    Duration most{};
    for (const ViewChart& chart : charts) most = std::max(most, chart.chart.*resolution);
    if (most == Duration{}) return;
    notes.push_back(std::string(what) + " below " + traces::short_duration(most) +
                    " are drawn as one with their neighbours.");
  };
  note("Operations", &TimelineChart::resolution);
  note("Bubbles", &TimelineChart::gap_resolution);
}

Result<void> select_policies(TimelineView& view, const std::vector<std::string>& policies) {
  if (policies.empty()) return {};
  for (ViewSection& section : view.sections) {
    for (ViewChart& chart : section.charts) {
      BUBBLESIM_RETURN_IF_ERROR(select_rows(chart.chart.rows, policies));
    }
    BUBBLESIM_RETURN_IF_ERROR(select_rows(section.table.rows, policies));
  }
  return {};
}

std::string view_text(const TimelineView& view) {
  return compact_text(view_json(view, ChartLevels::kLeftOut)) + '\n';
}

CheckedResult<TimelineView> read_view(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  Errors errors;
  ObjectReader root = document.root(errors);
  root.expect("format", kFormat);
  TimelineView view;
  view.title = root.text("title");
  for (ObjectReader& section : root.children("sections")) {
    view.sections.push_back(read_section(section));
  }
  root.finish();
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return view;
}

std::string view_page(const TimelineView& view) {
  return filled_page(view_page_files::kPage,
                     {{"title", markup_text(view.title)},
                      {"data", script_json(view_json(view, ChartLevels::kIncluded))}});
}

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
