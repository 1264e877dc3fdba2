// bubblesim results show: everything of one run.
#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "sim/app/app.hpp"
#include "sim/app/results_command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/utf8.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/store_export.hpp"

namespace bubblesim::app {
namespace {

Json record_json(const store::RunRecord& record) {
  Json counters = Json::array();
  for (const auto& [name, entry] : record.counters) {
    counters.push_back({{"name", name},
                        {"severity", severity_name(entry.severity)},
                        {"count", entry.count},
                        {"help", entry.help}});
  }
  Json settings = Json::object();
  for (const store::Setting& setting : record.run.settings) {
    settings[setting.pointer] = Json::parse(setting.value, nullptr, false);
  }
  Json config = Json::parse(record.run.config, nullptr, false);
  if (config.is_discarded()) config = record.run.config;
  Json rows = Json::array();
  const auto columns = observe::result_columns();
  for (const observe::ResultRow& row : record.rows) {
    Json& object = rows.emplace_back(Json::object());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::visit([&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          object[std::string(columns[i].name)] = nullptr;
        } else {
          object[std::string(columns[i].name)] = value;
        }
      }, row.cells[i]);
    }
  }
  return {{"key", record.run.key},
          {"sweep", record.sweep},
          {"index", record.run.index},
          {"point", record.run.point},
          {"seed", record.run.seed},
          {"repetition", record.run.repetition},
          {"status", record.status == store::RunStatus::kDone ? "done" : "failed"},
          {"reason", record.reason},
          {"host", record.host},
          {"version", record.version},
          {"finished_unix_ns", record.finished_unix_ns},
          {"cpu_ns", to_ns(record.cpu)},
          {"settings", std::move(settings)},
          {"rows", std::move(rows)},
          {"counters", std::move(counters)},
          {"config", std::move(config)}};
}

/// A column a policy and filler, a line a metric: rows of a run are few, their cells many.
std::vector<Line> turned_rows(const store::RunRecord& record) {
  std::vector<Line> lines;
  const auto columns = observe::result_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == "counters") continue;
    Line line{std::string(columns[i].name)};
    bool empty = true;
    for (const observe::ResultRow& row : record.rows) {
      line.push_back(store::cell_text(row.cells[i]));
      if (line.back().empty()) continue;
      empty = false;
      if (store::is_lower_bound(row, columns[i].name)) line.back().insert(0, ">");
      if (store::is_overloaded(row, columns[i].name)) line.back() = "overloaded";
    }
    if (!empty) lines.push_back(std::move(line));
  }
  return lines;
}

void print_line(const std::string& text) { print(escape_controls(text) + '\n'); }

void print_record(const store::RunRecord& record) {
  print_line("key         " + record.run.key);
  print_line(fmt::format("sweep       {}, index {}, repetition {}, seed {}", record.sweep,
                         record.run.index, record.run.repetition, record.run.seed));
  for (const store::Setting& setting : record.run.settings) {
    print_line(fmt::format("set         {} = {}", setting.pointer, setting.value));
  }
  print_line(fmt::format("program     {} on {}, {:.3g} s of CPU", record.version, record.host,
                         to_seconds(record.cpu)));
  if (record.status == store::RunStatus::kFailed) {
    std::istringstream reasons(record.reason);  // a fault a line
    for (std::string reason; std::getline(reasons, reason);) print_line("failed      " + reason);
  }
  print("\n" + aligned(turned_rows(record)));
  for (const auto& [name, entry] : record.counters) {
    print_line(fmt::format("{}: {} = {}: {}", severity_name(entry.severity), name, entry.count,
                           entry.help));
  }
  const Json config = Json::parse(record.run.config, nullptr, false);
  print("\nconfig\n" +
        (config.is_discarded() ? record.run.config : indented_text(config, 1)) + "\n");
}

}  // namespace

ExitCode show_result(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto store,
                             store::open_store(arguments.store, store::StoreAccess::kRead));
  store::RowFilter filter;
  filter.key = arguments.key;
  std::vector<store::RunRecord> found;
  const auto read = store->each_record(filter, [&](const store::RunRecord& record) {
    if (found.size() < 8) found.push_back(record);
  });
  if (!read) return tl::make_unexpected(read.error());
  if (found.size() != 1) {
    std::string keys;
    for (const store::RunRecord& record : found) {
      keys += (keys.empty() ? ": " : ", ") + record.run.key;
    }
    return fail(arguments.store, {},
                found.empty() ? "found no run whose key begins with " +
                                    quote_found(arguments.key) + "; 'list' shows keys"
                              : "found several runs whose keys begin with " +
                                    quote_found(arguments.key) + keys);
  }
  if (arguments.json) {
    print(indented_text(record_json(found[0]), 1) + "\n");
  } else {
    print_record(found[0]);
  }
  return kExitOk;
}

}  // namespace bubblesim::app
