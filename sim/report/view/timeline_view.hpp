// What `bubblesim view` shows of a trace or of a run: charts of timelines, and tables beside them.
// One page, one file of a run's folder, one picture are made of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/report/page_parts.hpp"
#include "traces/trace.hpp"

namespace bubblesim::report {

struct ViewColumn {
  std::string title;
  std::string unit;     ///< empty: none
  bool number = false;  ///< cells are aligned right
};

/// Cells are texts: the table's maker chose their digits.
struct ViewTable {
  std::string caption;
  std::vector<ViewColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< a cell a column
};

struct ViewChart {
  std::string label;  ///< what tells it from the section's others: "GPU 0"
  TimelineChart chart;
};

/// A trace, or a run of several policies.
struct ViewSection {
  std::string title;
  std::vector<std::string> notes;  ///< sentences
  std::vector<ViewChart> charts;   ///< all of the same axis; may be empty
  ViewTable table;
};

struct TimelineView {
  std::string title;
  std::vector<ViewSection> sections;
};

/// The most spans of a section's charts together; beyond it neighbours are joined. A span takes
/// about 15 bytes of a page.
inline constexpr std::size_t kTraceSpans = 400'000;
inline constexpr std::size_t kRunSpans = 80'000;

/// Notes on charts whose short spans were joined.
void note_joined(const std::vector<ViewChart>& charts, std::vector<std::string>& notes);

/// The file of a run's folder that view draws.
inline constexpr const char* kViewFileName = "view.json";

[[nodiscard]] std::string view_text(const TimelineView& view);

/// What view_text() wrote. Faults name the file and the place.
[[nodiscard]] CheckedResult<TimelineView> read_view(const std::string& path);

/// Leaves the rows of these policies, in this order, in every chart and table of a run; an oracle's
/// name may lack " (oracle)". No names: all rows. Fault: a policy that a section does not have.
[[nodiscard]] Result<void> select_policies(TimelineView& view,
                                           const std::vector<std::string>& policies);

/// A page that needs nothing else: no network, no other file, no clock. Texts of traces and runs
/// stand in it as data only; its content security policy allows its own style and script.
[[nodiscard]] std::string view_page(const TimelineView& view);

// A recorded job to look at: a row a rank, with kernels, communication, copies, and bubbles by
// cause.

/// `title` of the page. If the job has more than `most_ranks` (at most 64), the first of them are
/// shown; a note says so.
[[nodiscard]] TimelineView trace_view(const traces::JobTrace& job, const std::string& title,
                                      std::size_t most_ranks = 64);

}  // namespace bubblesim::report
