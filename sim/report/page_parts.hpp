// The parts of pages: safe texts, and a timeline as rows of lanes of spans over one axis of time,
// all zoomed together. Made from recorded traces (sim/report/view), runs and reports; drawn by
// page/timeline.js.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/time.hpp"
#include "traces/inspect/timeline_lanes.hpp"

namespace bubblesim::report {

enum class LaneForm : std::uint8_t {
  kThick,
  kThin,
  kStacked,  ///< overlapping spans lie below each other; such a lane has no levels
};

struct ChartLane {
  std::string label;
  LaneForm form = LaneForm::kThick;
  traces::ShownSpans spans;  ///< names are places in TimelineChart::names
};

/// A span of the whole row: an iteration.
struct ChartMark {
  Duration start{};
  Duration length{};
  std::string label;
};

struct ChartRow {
  std::string label;
  std::string note;  ///< a few words below the label
  std::vector<ChartMark> marks;
  std::vector<ChartLane> lanes;
};

struct TimelineChart {
  Duration length{};  ///< of the axis; 0: nothing to draw
  std::vector<std::string> names;
  std::vector<ChartRow> rows;
  Duration resolution{};  ///< shorter neighbours are joined; 0: none
  Duration gap_resolution{};  ///< of lanes of gaps (spans without a name)
};

/// Gives each text one place in TimelineChart::names.
class ChartNames {
 public:
  explicit ChartNames(TimelineChart& chart) : chart_(chart) {}
  std::uint32_t place_of(std::string_view text);

 private:
  TimelineChart& chart_;
  std::map<std::string, std::uint32_t, std::less<>> places_;
};

/// Joins short spans until all lanes together have at most `most`, with at least this resolution.
/// Lanes of gaps get a fifth of `most`, since people look for operations. Sets both resolutions.
void limit_spans(TimelineChart& chart, std::size_t most, Duration resolution = {});

/// Operations in all spans, less the number of spans.
[[nodiscard]] std::uint64_t joined_operations(const TimelineChart& chart);

enum class ChartLevels : std::uint8_t {
  kLeftOut,  ///< for files, whose readers make the levels
  kIncluded,
};

/// Compact: lists of numbers, times in ns. README.md has the keys.
[[nodiscard]] Json chart_json(const TimelineChart& chart, ChartLevels levels);

/// Reads chart_json()'s output, without levels. Faults are those of the reader's document.
[[nodiscard]] TimelineChart read_chart(ObjectReader& reader);

// Assembles pages from texts that cannot become markup or script.

/// Compact JSON without "<", ">" and "&", so that no text in it ends the script that holds it. Text
/// that is no UTF-8 is replaced.
[[nodiscard]] std::string script_json(const Json& json);

/// Replaces each {{name}} of the template by its text; the texts themselves are not searched for
/// names.
[[nodiscard]] std::string filled_page(
    std::string_view page,
    std::initializer_list<std::pair<std::string_view, std::string_view>> texts);

}  // namespace bubblesim::report
