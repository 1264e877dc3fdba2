#include "sim/store/store_export.hpp"

#include <set>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/number_text.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::store {
namespace {

/// A line of cells.
class CsvLine {
 public:
  void append(std::string_view cell) {
    if (!std::exchange(first_, false)) line_ += ',';
    append_csv_cell(line_, cell);
  }
  [[nodiscard]] std::string end() && { return std::move(line_) + '\n'; }

 private:
  std::string line_;
  bool first_ = true;
};

std::string csv_header(const std::vector<std::string>& pointers) {
  CsvLine line;
  for (const observe::ResultColumn& column : observe::result_columns()) line.append(column.name);
  for (const char* name : {"key", "sweep", "index", "point", "repetition"}) line.append(name);
  for (const std::string& pointer : pointers) line.append(pointer);
  return std::move(line).end();
}

std::string csv_line(const StoredRow& row, const std::vector<std::string>& pointers) {
  CsvLine line;
  for (const observe::Cell& cell : row.row.cells) line.append(cell_text(cell));
  line.append(row.key);
  line.append(row.sweep);
  line.append(std::to_string(row.index));
  line.append(row.point);
  line.append(std::to_string(row.repetition));
  for (const std::string& pointer : pointers) {
    std::string text;
    for (const Setting& setting : row.settings) {
      if (setting.pointer == pointer) text = setting_text(setting.value);
    }
    line.append(text);
  }
  return std::move(line).end();
}

std::string json_line(const StoredRow& row) {
  Json line = {{"key", row.key},     {"sweep", row.sweep}, {"index", row.index},
               {"point", row.point}, {"seed", row.seed},   {"repetition", row.repetition}};
  line["settings"] = settings_object(row.settings);
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

Result<std::vector<std::string>> swept_pointers(ResultsStore& store, const RowFilter& filter) {
  std::set<std::string> pointers;
  BUBBLESIM_RETURN_IF_ERROR(store.each_run(filter, [&](const StoredRun& run) {
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
