// `bubblesim results`: declarations that its parts share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/base/result.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::app {

struct ResultsArguments {
  std::string store;
  store::CompareOptions compare;      ///< its filter without settings, its group not set
  std::vector<std::string> settings;  ///< "/a/b=c"
  bool failed = false;
  bool json = false;
  bool csv = false;
  std::size_t limit = 1000;           ///< rows of a list for people; 0: all
  std::string key;
  bool by_point = false;
  std::string format;
  std::string output;
  std::vector<std::string> inputs;
};

struct FilteredStore {
  std::unique_ptr<store::ResultsStore> store;
  store::RowFilter filter;
};

/// Declares --policy, --sweep, --filler and --set.
void add_row_filters(CLI::App& command, ResultsArguments& arguments);

/// The store, opened to read, and the options' filter. Fault: the filter has a name that the store
/// lacks.
[[nodiscard]] Result<FilteredStore> open_filtered(const ResultsArguments& arguments);

[[nodiscard]] store::CompareOptions compare_options(const ResultsArguments& arguments,
                                                    const FilteredStore& opened);

/// The run whose key begins with `key`. Fault: there is none, or several.
[[nodiscard]] Result<store::RunRecord> find_record(store::ResultsStore& store,
                                                   const std::string& where,
                                                   const std::string& key);

/// Each function prints.
[[nodiscard]] ExitCode list_results(const ResultsArguments& arguments);
[[nodiscard]] ExitCode show_result(const ResultsArguments& arguments);
[[nodiscard]] ExitCode compare_results(const ResultsArguments& arguments);

// `bubblesim results`: tables as text, for people and for programs.

/// Cells of a line; the first line of a table holds the names.
using Line = std::vector<std::string>;

/// Digits of a key in lists; `show` accepts this many.
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
/// Says on standard error that no row passes the filter, unless the output says so.
void tell_of_no_rows(const ResultsArguments& arguments);

}  // namespace bubblesim::app
