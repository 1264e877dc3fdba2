#include "sim/report/view/timeline_view.hpp"

#include <bubblesim_view_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/observe/report.hpp"
#include "sim/report/page_text.hpp"
#include "sim/text/markup_text.hpp"
#include "traces/inspect/labels.hpp"

namespace bubblesim::report {
namespace {

constexpr const char* kFormat = "bubblesim.view/1";

Json table_json(const ViewTable& table) {
  Json columns = Json::array();
  for (const ViewColumn& column : table.columns) {
    columns.push_back(
        {{"title", column.title}, {"unit", column.unit}, {"number", column.number}});
  }
  Json rows = Json::array();
  for (const auto& cells : table.rows) rows.push_back({{"cells", cells}});
  return {{"caption", table.caption}, {"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Json section_json(const ViewSection& section, ChartLevels levels) {
  Json charts = Json::array();
  for (const ViewChart& chart : section.charts) {
    charts.push_back({{"label", chart.label}, {"chart", chart_json(chart.chart, levels)}});
  }
  return {{"title", section.title},
          {"notes", section.notes},
          {"charts", std::move(charts)},
          {"table", table_json(section.table)}};
}

Json view_json(const TimelineView& view, ChartLevels levels) {
  Json sections = Json::array();
  for (const ViewSection& section : view.sections) {
    sections.push_back(section_json(section, levels));
  }
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
  return filled_page(view_page_files::kHtml,
                     {{"title", markup_text(view.title)},
                      {"style_hash", view_page_files::kStyleHash},
                      {"style", view_page_files::kStyle},
                      {"script_hash", view_page_files::kScriptHash},
                      {"script", view_page_files::kScript},
                      {"data", script_json(view_json(view, ChartLevels::kIncluded))}});
}

}  // namespace bubblesim::report
