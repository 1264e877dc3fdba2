// Inside of `bubblesim results`: tables as text, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "sim/app/results_command.hpp"

namespace bubblesim::app {

/// Cells of a line; the first line of a table holds the names.
using Line = std::vector<std::string>;

/// Keys as lists show them; `show` takes as little.
inline constexpr std::size_t kShownDigits = 8;

/// Aligned columns, numbers to the right.
[[nodiscard]] std::string aligned(const std::vector<Line>& lines);
/// After RFC 4180.
[[nodiscard]] std::string csv_table(const std::vector<Line>& lines);
/// A JSON list of objects; empty cells are null.
[[nodiscard]] std::string json_table(const std::vector<Line>& lines);

/// Five digits, for people.
[[nodiscard]] std::string short_number(double value);
/// "/a=1 /b=text".
[[nodiscard]] std::string assignments_text(const std::vector<store::Setting>& settings);
/// Prints to standard output.
void print(const std::string& text);
/// Says on standard error that nothing in the store passes the filter, where the output has no word
/// of it.
void tell_of_no_rows(const ResultsArguments& arguments);

}  // namespace bubblesim::app
