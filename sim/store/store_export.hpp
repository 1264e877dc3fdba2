// A store's rows as text for other programs: CSV and JSON, a piece at a time.
//
// CSV: the columns of OUTPUTS.md, then key, sweep, index, point, repetition, then one column for
// every pointer that a sweep set, by name. Numbers are the shortest text that reads back the same.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::store {

enum class ExportFormat : std::uint8_t { kCsv, kJson };

/// Takes pieces of the text in order; a fault ends the export.
using TextSink = std::function<Result<void>(std::string_view)>;

/// Writes the rows that pass the filter to `sink`; returns their number.
[[nodiscard]] Result<std::size_t> export_rows(ResultsStore& store, const RowFilter& filter,
                                              ExportFormat format, const TextSink& sink);

/// All JSON pointers in the runs' settings, sorted.
[[nodiscard]] Result<std::vector<std::string>> swept_pointers(ResultsStore& store,
                                                              const RowFilter& filter);

/// A cell as in CSV; empty without a value.
[[nodiscard]] std::string cell_text(const observe::Cell& cell);

/// A cell as in JSON; null without a value.
[[nodiscard]] Json cell_json(const observe::Cell& cell);

/// Values by pointer.
[[nodiscard]] Json settings_object(const std::vector<Setting>& settings);

/// A setting's value for people: texts without quotes, other values as JSON.
[[nodiscard]] std::string setting_text(const std::string& json);

/// The text of the setting of that pointer; empty: there is none.
[[nodiscard]] std::string setting_at(const std::vector<Setting>& settings,
                                     std::string_view pointer);

}  // namespace bubblesim::store
