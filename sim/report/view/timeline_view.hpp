// The content of `bubblesim view` for a trace or a run: charts of timelines, with tables. HTML
// pages, pictures and a run's file view.json are made from it.
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

/// Cells are texts, with numbers already rounded for display.
struct ViewTable {
  std::string caption;
  std::vector<ViewColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< a cell for each column
};

struct ViewChart {
  std::string label;  ///< unique in the section: "GPU 0"
  TimelineChart chart;
};

/// A trace, or a run of several policies.
struct ViewSection {
  std::string title;
  std::vector<std::string> notes;  ///< sentences
  std::vector<ViewChart> charts;   ///< all with the same axis; may be empty
  ViewTable table;
};

struct TimelineView {
  std::string title;
  std::vector<ViewSection> sections;
};

/// The most spans of all charts of a section, of a trace and of a run; beyond that, short
/// neighbours are joined. A span takes about 15 bytes of a page.
inline constexpr std::size_t kTraceSpans = 400'000;
inline constexpr std::size_t kRunSpans = 80'000;

/// Adds notes on charts whose short spans were joined.
void note_joined(const std::vector<ViewChart>& charts, std::vector<std::string>& notes);

/// The file of a run's folder that `bubblesim view` draws.
inline constexpr const char* kViewFileName = "view.json";

[[nodiscard]] std::string view_text(const TimelineView& view);

/// Reads a file that view_text() made. Faults name the file and the place.
[[nodiscard]] CheckedResult<TimelineView> read_view(const std::string& path);

/// Keeps only the rows of these policies, in this order, in every chart and table of a run; an
/// oracle's name may lack " (oracle)". No names: all rows. Fault: a policy that a section lacks.
[[nodiscard]] Result<void> select_policies(TimelineView& view,
                                           const std::vector<std::string>& policies);

/// A self-contained page: no network, no other file, no clock. Texts of traces and runs are
/// embedded as data only; the content security policy allows only the page's own style and script.
[[nodiscard]] std::string view_page(const TimelineView& view);

// The view of a recorded job: a row for each rank, with kernels, communication, copies, and bubbles
// by cause.

/// `title` of the page. Of a job with more than `most_ranks` ranks (at most 64), the first are
/// shown; a note says so.
[[nodiscard]] TimelineView trace_view(const traces::JobTrace& job, const std::string& title,
                                      std::size_t most_ranks = 64);

}  // namespace bubblesim::report
