#include "sim/store/store_export.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/number_text.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::store {
namespace {

std::string csv_header(const std::vector<std::string>& pointers) {
  std::vector<std::string_view> names;
  for (const auto& column : observe::result_columns()) names.push_back(column.name);
  names.insert(names.end(), {"key", "sweep", "index", "point", "repetition"});
  names.insert(names.end(), pointers.begin(), pointers.end());
  std::string line;
  append_csv_line(line, names);
  return line;
}

std::string csv_line(const StoredRow& row, const std::vector<std::string>& pointers) {
  std::vector<std::string> cells;
  for (const observe::Cell& cell : row.row.cells) cells.push_back(cell_text(cell));
  cells.insert(cells.end(), {row.run.key, row.sweep, std::to_string(row.run.index), row.run.point,
                             std::to_string(row.run.repetition)});
  for (const std::string& pointer : pointers) {
    cells.push_back(setting_at(row.run.settings, pointer));
  }
  std::string line;
  append_csv_line(line, cells);
  return line;
}

std::string json_line(const StoredRow& row) {
  const PlannedRun& run = row.run;
  Json line = {{"key", run.key},     {"sweep", row.sweep}, {"index", run.index},
               {"point", run.point}, {"seed", run.seed},   {"repetition", run.repetition}};
  line["settings"] = settings_object(run.settings);
  const auto columns = observe::result_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == "seed") continue;  // above, without sign
    line[std::string(columns[i].name)] = cell_json(row.row.cells[i]);
  }
  return compact_text(line);
}

}  // namespace

std::string cell_text(const observe::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return std::to_string(*integer);
  const auto* number = std::get_if<double>(&cell);
  return number == nullptr ? std::string() : shortest_text(*number);
}

Json cell_json(const observe::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

Json settings_object(const std::vector<Setting>& settings) {
  Json object = Json::object();
  for (const Setting& setting : settings) {
    Json value = Json::parse(setting.value, nullptr, false);
    object[setting.pointer] = value.is_discarded() ? Json(setting.value) : std::move(value);
  }
  return object;
}

std::string setting_text(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  return value.is_string() ? value.get<std::string>() : json;
}

std::string setting_at(const std::vector<Setting>& settings, std::string_view pointer) {
  const auto found = std::ranges::find(settings, pointer, &Setting::pointer);
  return found == settings.end() ? std::string() : setting_text(found->value);
}

Result<std::vector<std::string>> swept_pointers(ResultsStore& store, const RowFilter& filter) {
  std::set<std::string> pointers;
  BUBBLESIM_RETURN_IF_ERROR(store.each_run(filter, [&](const RunRecord& run) {
    for (const Setting& setting : run.run.settings) pointers.insert(setting.pointer);
  }));
  return std::vector<std::string>(pointers.begin(), pointers.end());
}

Result<std::size_t> export_rows(ResultsStore& store, const RowFilter& filter, ExportFormat format,
                                const TextSink& sink) {
  const bool csv = format == ExportFormat::kCsv;
  std::vector<std::string> pointers;
  if (csv) {
    BUBBLESIM_ASSIGN_OR_RETURN(pointers, swept_pointers(store, filter));
  }
  Result<void> written = sink(csv ? csv_header(pointers) : "[");
  std::size_t rows = 0;
  BUBBLESIM_RETURN_IF_ERROR(store.each_row(filter, [&](const StoredRow& row) {
    if (!written) return;
    const std::string_view before = rows++ == 0 ? "\n" : ",\n";
    written = sink(csv ? csv_line(row, pointers) : std::string(before) + json_line(row));
  }));
  if (written && !csv) written = sink("\n]\n");
  BUBBLESIM_RETURN_IF_ERROR(written);
  return rows;
}

}  // namespace bubblesim::store
