#include "sim/report/page_parts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/base/json.hpp"

namespace bubblesim::report {
namespace {

using traces::ShownSpan;
using traces::ShownSpans;
using traces::Paint;

constexpr std::array<Choice<LaneForm>, 3> kForms{
    {{"thick", LaneForm::kThick}, {"thin", LaneForm::kThin}, {"stacked", LaneForm::kStacked}}};
// In a file, what a span is called and how it is painted are one number.
constexpr std::uint32_t kUnnamed = traces::kNone;

std::string_view form_name(LaneForm form) {
  return kForms[static_cast<std::size_t>(form)].name;
}

/// Pairs of name and paint by their place in the file's lists.
class Things {
 public:
  std::size_t place_of(const ShownSpan& span) {
    const auto key = std::pair(span.name, span.paint);
    const auto [place, fresh] = places_.try_emplace(key, order_.size());
    if (fresh) order_.push_back(key);
    return place->second;
  }
  void write(const TimelineChart& chart, Json& json) const {
    Json names = Json::array();
    Json paints = Json::array();
    for (const auto& [name, paint] : order_) {
      names.push_back(name == kUnnamed ? std::string() : chart.names[name]);
      paints.push_back(traces::paint_name(paint));
    }
    json["names"] = std::move(names);
    json["paints"] = std::move(paints);
  }

 private:
  std::map<std::pair<std::uint32_t, Paint>, std::size_t> places_;
  std::vector<std::pair<std::uint32_t, Paint>> order_;
};

Json levels_json(const ShownSpans& spans, Duration length) {
  Json levels = Json::array();
  for (const traces::LaneLevel& level : traces::lane_levels(spans, length)) {
    Json runs = Json::array();
    std::uint32_t end = 0;
    for (const traces::PaintRun& run : level.runs) {
      runs.push_back(run.column - end);
      runs.push_back(run.columns);
      runs.push_back(static_cast<unsigned>(run.paint) * traces::kPaintLevels + run.level - 1U);
      end = run.column + run.columns;
    }
    levels.push_back({{"columns", level.columns}, {"runs", std::move(runs)}});
  }
  return levels;
}

Json lane_json(const ChartLane& lane, Things& things) {
  Json spans = Json::array();
  Json joined = Json::array();
  Duration end{};
  for (std::size_t i = 0; i < lane.spans.size(); ++i) {
    const ShownSpan& span = lane.spans[i];
    spans.push_back(to_ns(span.start - end));
    spans.push_back(to_ns(span.length));
    spans.push_back(things.place_of(span));
    end = span.start + span.length;
    if (span.count == 1) continue;
    joined.push_back(i);
    joined.push_back(span.count);
    joined.push_back(to_ns(span.covered));
  }
  return {{"label", lane.label},
          {"form", form_name(lane.form)},
          {"spans", std::move(spans)},
          {"joined", std::move(joined)}};
}

Json row_json(const ChartRow& row, Duration length, ChartLevels levels, Things& things) {
  Json marks = list_json(row.marks, [](const ChartMark& mark) -> Json {
    return {{"start", to_ns(mark.start)}, {"length", to_ns(mark.length)}, {"label", mark.label}};
  });
  Json lanes = list_json(row.lanes, [&](const ChartLane& lane) {
    Json json = lane_json(lane, things);
    if (levels == ChartLevels::kIncluded && lane.form != LaneForm::kStacked) {
      json["levels"] = levels_json(lane.spans, length);
    }
    return json;
  });
  return {{"label", row.label},
          {"note", row.note},
          {"marks", std::move(marks)},
          {"lanes", std::move(lanes)}};
}

using Numbers = std::vector<std::int64_t>;
constexpr Range<std::int64_t> kNotNegative{0};

/// Three numbers a span; spans that are not in order, or outside of the axis, are faults.
void read_spans(ObjectReader& reader, const TimelineChart& chart,
                const std::vector<Paint>& paints, ChartLane& lane) {
  const Numbers numbers = reader.integers<std::int64_t>("spans");
  if (numbers.size() % 3 != 0) reader.fault("spans", "expected three numbers for each span");
  const std::int64_t axis = to_ns(chart.length);
  std::int64_t end = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3) {
    const auto [gap, length, thing] = std::tuple(numbers[i], numbers[i + 1], numbers[i + 2]);
    // Compared so that no sum overflows, whatever the numbers are.
    const bool begins = gap >= last - end && gap <= axis - end;
    if (!begins || length < 0 || length > axis - (end + gap) || thing < 0 ||
        static_cast<std::size_t>(thing) >= paints.size()) {
      reader.fault("spans", "the span at number " + std::to_string(i) +
                                " is out of order, outside of the axis, or of no known name");
      return;
    }
    last = end + gap;
    end = last + length;
    lane.spans.push_back({Duration{last}, Duration{length}, static_cast<std::uint32_t>(thing),
                          paints[static_cast<std::size_t>(thing)], 1, Duration{length}});
  }
}

void read_joined(ObjectReader& reader, ChartLane& lane) {
  const Numbers numbers = reader.integers<std::int64_t>("joined", kNotNegative);
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3) {
    const auto place = static_cast<std::size_t>(numbers[i]);
    if (place >= lane.spans.size() || numbers[i + 1] > UINT32_MAX ||
        numbers[i + 2] > to_ns(lane.spans[place].length)) {
      reader.fault("joined", "number " + std::to_string(i) + " is of no span, or exceeds it");
      return;
    }
    lane.spans[place].count = static_cast<std::uint32_t>(numbers[i + 1]);
    lane.spans[place].covered = Duration{numbers[i + 2]};
  }
}

std::vector<Paint> read_paints(ObjectReader& reader, std::size_t names) {
  std::vector<Paint> paints;
  for (const std::string& name : reader.texts("paints")) {
    const auto paint = traces::paint_named(name);
    if (!paint) reader.fault("paints", "found \"" + name + "\", which is no paint");
    paints.push_back(paint.value_or(Paint::kCompute));
  }
  if (paints.size() != names) reader.fault("paints", "expected as many as names");
  paints.resize(names);
  return paints;
}

enum class LaneHolds : std::uint8_t { kOperations, kGaps };

constexpr std::size_t kGapShare = 5;  // one part in so many

LaneHolds holds(const ChartLane& lane) {
  const bool gaps = !lane.spans.empty() && lane.spans.front().name == kUnnamed;
  return gaps ? LaneHolds::kGaps : LaneHolds::kOperations;
}

/// Limits the spans of the lanes that hold `what`. Returns the resolution.
Duration limit_lanes(TimelineChart& chart, LaneHolds what, std::size_t most, Duration least) {
  std::vector<ShownSpans> lanes;
  for (const ChartRow& row : chart.rows) {
    for (const ChartLane& lane : row.lanes) {
      if (holds(lane) == what) lanes.push_back(lane.spans);
    }
  }
  const Duration resolution =
      std::max(least, traces::resolution_for(lanes, most, chart.length));
  for (ChartRow& row : chart.rows) {
    for (ChartLane& lane : row.lanes) {
      if (holds(lane) == what && resolution > Duration{}) {
        lane.spans = traces::join_short(lane.spans, resolution);
      }
    }
  }
  return resolution;
}

}  // namespace

std::uint32_t ChartNames::place_of(std::string_view text) {
  if (const auto found = places_.find(text); found != places_.end()) return found->second;
  const auto place = static_cast<std::uint32_t>(chart_.names.size());
  chart_.names.emplace_back(text);
  places_.emplace(text, place);
  return place;
}

void limit_spans(TimelineChart& chart, std::size_t most, Duration resolution) {
  const std::size_t gaps = most / kGapShare;
  chart.resolution = limit_lanes(chart, LaneHolds::kOperations, most - gaps, resolution);
  chart.gap_resolution = limit_lanes(chart, LaneHolds::kGaps, gaps, resolution);
}

std::uint64_t joined_operations(const TimelineChart& chart) {
  std::uint64_t joined = 0;
  for (const ChartRow& row : chart.rows) {
    for (const ChartLane& lane : row.lanes) {
      for (const ShownSpan& span : lane.spans) joined += span.count - 1;
    }
  }
  return joined;
}

Json chart_json(const TimelineChart& chart, ChartLevels levels) {
  Json json{{"length", to_ns(chart.length)},
            {"resolution", to_ns(chart.resolution)},
            {"gap_resolution", to_ns(chart.gap_resolution)}};
  Things things;
  Json rows = list_json(chart.rows, [&](const ChartRow& row) {
    return row_json(row, chart.length, levels, things);
  });
  things.write(chart, json);
  if (levels == ChartLevels::kIncluded) {
    Json kinds = Json::array();
    for (std::size_t i = 0; i < traces::kPaintCount; ++i) {
      const auto paint = static_cast<Paint>(i);
      kinds.push_back({{"name", traces::paint_name(paint)}, {"label", traces::paint_label(paint)}});
    }
    json["kinds"] = std::move(kinds);
  }
  json["rows"] = std::move(rows);
  return json;
}

TimelineChart read_chart(ObjectReader& reader) {
  TimelineChart chart;
  chart.length = Duration{reader.integer<std::int64_t>("length", kNotNegative)};
  chart.resolution = Duration{reader.integer<std::int64_t>("resolution", kNotNegative)};
  chart.gap_resolution = Duration{reader.integer<std::int64_t>("gap_resolution", kNotNegative)};
  chart.names = reader.texts("names");
  const std::vector<Paint> paints = read_paints(reader, chart.names.size());
  for (ObjectReader& from : reader.children("rows")) {
    ChartRow& row = chart.rows.emplace_back();
    row.label = from.text("label");
    row.note = from.text("note");
    for (ObjectReader& mark : from.children("marks")) {
      row.marks.push_back({Duration{mark.integer<std::int64_t>("start")},
                           Duration{mark.integer<std::int64_t>("length", kNotNegative)},
                           mark.text("label")});
    }
    for (ObjectReader& part : from.children("lanes")) {
      ChartLane& lane = row.lanes.emplace_back();
      lane.label = part.text("label");
      lane.form = part.choice("form", kForms);
      read_spans(part, chart, paints, lane);
      read_joined(part, lane);
    }
  }
  return chart;
}

std::string script_json(const Json& json) {
  const std::string text = compact_text(json);
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string filled_page(
    std::string_view page,
    std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  std::string result;
  while (!page.empty()) {
    const std::size_t from = page.find("{{");
    result += page.substr(0, from);
    if (from == std::string_view::npos) break;
    const std::size_t to = page.find("}}", from);
    const std::string_view name = page.substr(from + 2, to - from - 2);
    for (const auto& [key, text] : texts) {
      if (key == name) result += text;
    }
    page.remove_prefix(to + 2);
  }
  return result;
}

}  // namespace bubblesim::report
