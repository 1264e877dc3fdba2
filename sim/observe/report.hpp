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

/// How many columns a table has.
enum class Columns : std::uint8_t {
  kFew,  ///< the columns on what was gained and what it cost
  kAll,
};

/// A fixed-width table: one row a policy and filler, then a line a filler with fill jobs. A ">"
/// before a latency marks a lower bound; "overloaded" stands for latencies of a filler that falls
/// behind. Behind a policy, a "*" says that it is reconstructed, and a "!" that a counter of
/// severity loss or error concerns the row.
[[nodiscard]] std::string report_table(const RunReport& report, Columns columns);

/// How many lines of notes.
enum class Notes : std::uint8_t {
  kFew,  ///< at most kFewNotes: the footnote, errors and losses, overloads, gates, then refusals
  kAll,  ///< notices too
};
inline constexpr std::size_t kFewNotes = 5;

/// The footnote on reconstructed policies, then the notes that readers must know before they trust
/// the tables of these reports, a line each, the worst first; a note common to all reports appears
/// once. With kFew, the last line says how many notes are left out.
[[nodiscard]] std::string report_notes(std::span<const RunReport> reports, Notes notes);

/// The policy's name in a table; if several results are of the same policy, with the parameters in
/// which they differ.
[[nodiscard]] std::string policy_label(const PolicyResult& policy,
                                       const std::vector<PolicyResult>& all);

/// The label of a table's row, of a policy and one of its fillers (an index; nothing: a row without
/// filler): policy_label(), then the marks " (oracle)", " *" and " !" of report_table().
[[nodiscard]] std::string row_label(const RunReport& report, const PolicyResult& policy,
                                    std::optional<std::size_t> filler);
/// Such a label without its marks.
[[nodiscard]] std::string_view without_marks(std::string_view label);

/// The whole report but for single latencies; times in whole nanoseconds. Ends with a newline.
[[nodiscard]] std::string report_json(const RunReport& report);

/// Names of the CSV columns, in order.
[[nodiscard]] std::span<const std::string_view> csv_columns();
/// The line of column names.
[[nodiscard]] std::string csv_header();
/// One line a policy and filler (a policy without fillers has one line with empty filler
/// columns), in the order of csv_columns(). RFC 4180 quoting, lines end with "\n".
[[nodiscard]] std::string csv_rows(const RunReport& report);

/// The columns and lines of PolicyResult::usage: one line an interval, by policy, GPU and time.
[[nodiscard]] std::span<const std::string_view> usage_columns();
[[nodiscard]] std::string usage_header();
[[nodiscard]] std::string usage_rows(const RunReport& report);

}  // namespace bubblesim::observe
