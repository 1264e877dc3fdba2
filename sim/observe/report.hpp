// A RunReport as text: for people, for spreadsheets, for programs. OUTPUTS.md defines every
// column and key; units are in their names.
//
// Everything is a string: libraries never print. The same report gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

/// The number of columns of a table.
enum class Columns : std::uint8_t {
  kFew,  ///< columns for gains and costs only
  kAll,
};

/// A fixed-width table: a row for each policy and filler, then a line for each filler with fill
/// jobs. A ">" before a latency marks a lower bound; "overloaded" replaces latencies of a filler
/// that falls behind. After a policy's name, "*" marks a reconstructed policy, and "!" a counter of
/// severity loss or error that concerns the row.
[[nodiscard]] std::string report_table(const RunReport& report, Columns columns);

/// The table of language-model servers, a row for each policy and server (OUTPUTS.md, "Servers");
/// empty without servers. report_table() has it.
[[nodiscard]] std::string server_table(const RunReport& report, Columns columns);

/// The number of lines of notes.
enum class Notes : std::uint8_t {
  kFew,  ///< at most kFewNotes: the footnote, errors and losses, overloads, gates, then refusals
  kAll,  ///< notices too
};
inline constexpr std::size_t kFewNotes = 5;

/// The footnote on reconstructed policies, then the notes that readers must know before they trust
/// the tables of these reports, a line each, the worst first; a note that all reports share appears
/// once. With kFew, the last line counts the notes left out.
[[nodiscard]] std::string report_notes(std::span<const RunReport> reports, Notes notes);

/// The policy's name in a table; if several results have the same policy, with the parameters in
/// which they differ.
[[nodiscard]] std::string policy_label(const PolicyResult& policy,
                                       const std::vector<PolicyResult>& all);

/// The label of a table's row, of a policy and one of its fillers (an index; nothing: a row without
/// filler): policy_label(), then the marks " (oracle)", " *" and " !" of report_table().
[[nodiscard]] std::string row_label(const RunReport& report, const PolicyResult& policy,
                                    std::optional<std::size_t> filler);
/// A row's label without its marks.
[[nodiscard]] std::string_view without_marks(std::string_view label);

/// The whole report without single latencies; times in whole nanoseconds. Ends with a newline.
[[nodiscard]] std::string report_json(const RunReport& report);

/// The line of names of result_columns().
[[nodiscard]] std::string csv_header();
/// One line a policy and filler (a policy without fillers has one line with empty filler
/// columns), in the order of result_columns(). RFC 4180 quoting, lines end with "\n".
[[nodiscard]] std::string csv_rows(const RunReport& report);

/// The same of language-model servers only, with their columns: one line a policy and server.
[[nodiscard]] std::string servers_header();
[[nodiscard]] std::string servers_rows(const RunReport& report);

/// The columns and lines of PolicyResult::usage: one line an interval, by policy, GPU and time.
[[nodiscard]] std::string usage_header();
[[nodiscard]] std::string usage_rows(const RunReport& report);

}  // namespace bubblesim::observe
