// bubblesim results list: a line a policy and filler, or a line a failure.
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "sim/app/shared/app.hpp"
#include "sim/app/results_command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/utf8.hpp"
#include "sim/store/compare_policies.hpp"
#include "sim/store/store_export.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

std::string shown_cell(const store::StoredRow& row, std::size_t column) {
  const observe::Cell& cell = row.row.cells[column];
  const auto* number = std::get_if<double>(&cell);
  const std::string text = number == nullptr ? store::cell_text(cell) : short_number(*number);
  const std::string_view name = observe::result_columns()[column].name;
  if (!text.empty() && store::is_overloaded(row.row, name)) return "overloaded";
  return store::is_lower_bound(row.row, name) ? ">" + text : text;
}

Result<std::vector<std::size_t>> metric_columns(const ResultsArguments& arguments) {
  std::vector<std::size_t> columns;
  const std::vector<std::string>& asked = arguments.compare.metrics;
  const std::span<const std::string> names = asked.empty() ? store::default_metrics() : asked;
  for (const std::string& name : names) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::size_t column, store::find_column(name));
    columns.push_back(column);
  }
  return columns;
}

struct Failures {
  std::size_t done = 0;
  std::vector<store::RunRecord> failed;
};

Result<Failures> failures(store::ResultsStore& store, const store::RowFilter& filter) {
  Failures result;
  BUBBLESIM_RETURN_IF_ERROR(store.each_run(filter, [&](const store::RunRecord& run) {
    if (run.status == store::RunStatus::kDone) {
      ++result.done;
    } else {
      result.failed.push_back(run);
    }
  }));
  return result;
}

int print_failed(const ResultsArguments& arguments, const Failures& found) {
  std::vector<Line> lines{{"key", "sweep", "index", "seed", "settings", "reason"}};
  for (const store::RunRecord& run : found.failed) {
    lines.push_back({run.run.key, run.sweep, std::to_string(run.run.index),
                     std::to_string(run.run.seed), assignments_text(run.run.settings), run.reason});
  }
  if (arguments.csv) {
    print(csv_table(lines));
  } else if (arguments.json) {
    fmt::print("{{\"done\": {}, \"failed\": {}}}\n", found.done, json_table(lines));
  } else {
    for (std::size_t i = 1; i < lines.size(); ++i) {
      fmt::print("{}  {} {}  {}\n", lines[i][0].substr(0, kShownDigits), lines[i][1], lines[i][2],
                 lines[i][4]);
      std::string reason = lines[i][5];
      for (std::size_t at = reason.find('\n'); at != std::string::npos;
           at = reason.find('\n', at + 5)) {
        reason.replace(at, 1, "\n    ");
      }
      fmt::print("    {}\n", reason);
    }
    fmt::print("{} runs done, {} failed\n", found.done, found.failed.size());
  }
  return kExitOk;
}

/// Short cells for people, whole ones for programs.
Line list_line(const store::StoredRow& row, const std::vector<std::string>& pointers,
               const std::vector<std::size_t>& columns, bool for_people) {
  Line line{for_people ? row.run.key.substr(0, kShownDigits) : row.run.key, row.sweep,
            std::to_string(row.run.index), std::to_string(row.run.seed)};
  for (const std::string& pointer : pointers) {
    line.push_back(store::setting_at(row.run.settings, pointer));
  }
  for (const std::size_t column : columns) {
    line.push_back(for_people ? shown_cell(row, column) : store::cell_text(row.row.cells[column]));
  }
  return line;
}

/// Policies that one run has twice under one name: their rows are told apart by parameters, which
/// are known when all rows of the run have been read. What a row's inputs have lost marks it.
class Namesakes {
 public:
  /// Once for each row, in their order; those that are shown have a line each.
  void see(const store::StoredRow& row, bool shown) {
    Seen seen{row.run.key, store::text_in(row.row, "policy"),
              store::text_in(row.row, "policy_parameters"), store::text_in(row.row, "losses")};
    if (shown && !seen.losses.empty()) lost_.insert(seen.losses);
    labels_[row.run.key].see(seen.policy, seen.parameters);
    if (shown) seen_.push_back(std::move(seen));
  }
  /// Puts the labels into `column` of the lines after the first, which holds the names.
  void show(std::vector<Line>& lines, std::size_t column) const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const Seen& row = seen_[i];
      lines[i + 1][column] = labels_.at(row.key).label(row.policy, row.parameters) +
                             (row.losses.empty() ? "" : " !");
    }
  }
  /// What the marks stand for; empty: nothing is marked.
  [[nodiscard]] std::string marks() const {
    std::string text;
    for (const std::string& losses : lost_) text += "! " + losses + "\n";
    return text;
  }

 private:
  struct Seen {
    std::string key;
    std::string policy;
    std::string parameters;
    std::string losses;  ///< names of counters
  };

  std::vector<Seen> seen_;
  std::set<std::string> lost_;
  std::map<std::string, store::PolicyLabels> labels_;  ///< by run
};

}  // namespace

ExitCode list_results(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto columns, metric_columns(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto opened, open_filtered(arguments));
  const auto& [store, filter] = opened;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto found, failures(*store, filter));
  if (arguments.failed) return print_failed(arguments, found);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto pointers, store::swept_pointers(*store, filter));
  const bool for_people = !arguments.json && !arguments.csv;
  columns.insert(columns.begin(),
                 {*store::find_column("policy"), *store::find_column("filler")});
  std::vector<Line> lines{{"key", "sweep", "index", "seed"}};
  lines[0].insert(lines[0].end(), pointers.begin(), pointers.end());
  for (const std::size_t column : columns) {
    lines[0].emplace_back(observe::result_columns()[column].name);
  }
  std::size_t left_out = 0;
  Namesakes namesakes;
  BUBBLESIM_RETURN_IF_ERROR(store->each_row(filter, [&](const store::StoredRow& row) {
    const bool shown = !for_people || arguments.limit == 0 || lines.size() <= arguments.limit;
    if (for_people) namesakes.see(row, shown);
    if (shown) {
      lines.push_back(list_line(row, pointers, columns, for_people));
    } else {
      ++left_out;
    }
  }));
  if (for_people) namesakes.show(lines, 4 + pointers.size());
  if (arguments.csv) {
    print(csv_table(lines));
    if (lines.size() == 1) tell_of_no_rows(arguments);
  } else if (arguments.json) {
    fmt::print("{{\"done\": {}, \"failed\": {}, \"rows\": {}}}\n", found.done,
               found.failed.size(), json_table(lines));
  } else {
    print(aligned(lines));
    print(namesakes.marks());
    if (left_out > 0) fmt::print("... and {} more lines (--limit 0 shows all)\n", left_out);
    fmt::print("{} runs done, {} failed{}\n", found.done, found.failed.size(),
               found.failed.empty() ? "" : " (list --failed says why)");
  }
  return kExitOk;
}

// bubblesim results compare: policies against one of them.

namespace {

Line comparison_line(const store::PolicyComparison& line, bool for_people) {
  const auto number = [&](double value) -> std::string {
    if (for_people && line.overloaded > 0) return "overloaded";
    return for_people ? short_number(value) : store::cell_text(value);
  };
  const bool paired = line.pairs > 0;
  Line cells{line.metric, line.filler, assignments_text(line.point),
             line.policy + (for_people && !line.losses.empty() ? " !" : ""),
             std::to_string(line.pairs), paired ? number(line.mean) : "",
             paired ? number(line.baseline_mean) : "", paired ? number(line.difference) : ""};
  if (line.half_width && !(for_people && line.overloaded > 0)) {
    cells.push_back(number(line.difference - *line.half_width));
    cells.push_back(number(line.difference + *line.half_width));
    cells.emplace_back(std::abs(line.difference) > *line.half_width ? "yes" : "no");
  } else {
    cells.insert(cells.end(), {"", "", ""});
  }
  cells.push_back(std::to_string(line.unpaired));
  cells.push_back(std::to_string(line.lower_bounds));
  cells.push_back(std::to_string(line.overloaded));
  if (!for_people) cells.push_back(fmt::format("{}", fmt::join(line.losses, "; ")));
  return cells;
}

}  // namespace

store::CompareOptions compare_options(const ResultsArguments& arguments,
                                      const FilteredStore& opened) {
  store::CompareOptions options = arguments.compare;
  options.filter = opened.filter;
  if (arguments.by_point) options.group = store::ComparisonGroup::kPoint;
  return options;
}

ExitCode compare_results(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto opened, open_filtered(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto compared,
      store::compare_policies(*opened.store, compare_options(arguments, opened)));
  const bool for_people = !arguments.json && !arguments.csv;
  std::vector<Line> lines{{"metric", "filler", "point", "policy", "pairs", "mean",
                           "baseline_mean", "difference", "low", "high", "differs", "unpaired",
                           "lower_bounds", "overloaded"}};
  if (!for_people) lines.front().emplace_back("losses");
  std::set<std::string> lost;
  for (const store::PolicyComparison& line : compared.lines) {
    lines.push_back(comparison_line(line, for_people));
    lost.insert(line.losses.begin(), line.losses.end());
  }
  if (arguments.csv) {
    print(csv_table(lines));
  } else if (arguments.json) {
    fmt::print("{{\"baseline\": {}, \"confidence\": {}, \"comparisons\": {}}}\n",
               quote_found(compared.baseline), compared.confidence, json_table(lines));
  } else {
    fmt::print("against {}; low and high: {:g} % interval of the mean paired difference\n\n",
               compared.baseline, 100 * compared.confidence);
    print(aligned(lines));
    for (const std::string& losses : lost) fmt::print("! {}\n", losses);
  }
  return kExitOk;
}

// bubblesim results show: everything of one run.

namespace {

Json record_json(const store::RunRecord& record) {
  Json config = Json::parse(record.run.config, nullptr, false);
  if (config.is_discarded()) config = record.run.config;
  Json rows = Json::array();
  const auto columns = observe::result_columns();
  for (const observe::ResultRow& row : record.rows) {
    Json& object = rows.emplace_back(Json::object());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      object[std::string(columns[i].name)] = store::cell_json(row.cells[i]);
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
          {"settings", store::settings_object(record.run.settings)},
          {"rows", std::move(rows)},
          {"counters", counter_list(record.counters)},
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

Result<store::RunRecord> find_record(store::ResultsStore& store, const std::string& where,
                                     const std::string& key) {
  store::RowFilter filter;
  filter.key = key;
  std::vector<store::RunRecord> found;
  BUBBLESIM_RETURN_IF_ERROR(store.each_record(filter, [&](const store::RunRecord& record) {
    if (found.size() < 8) found.push_back(record);
  }));
  if (found.size() == 1) return std::move(found[0]);
  std::string keys;
  for (const store::RunRecord& record : found) {
    keys += (keys.empty() ? ": " : ", ") + record.run.key;
  }
  return fail(where, {},
              found.empty() ? "found no run whose key begins with " + quote_found(key) +
                                  "; 'bubblesim results' lists keys"
                            : "found several runs whose keys begin with " + quote_found(key) +
                                  keys);
}

ExitCode show_result(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto store,
                             store::open_store(arguments.store, store::StoreAccess::kRead));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto found,
                             find_record(*store, arguments.store, arguments.key));
  if (arguments.json) {
    print(indented_text(record_json(found), 1) + "\n");
  } else {
    print_record(found);
  }
  return kExitOk;
}

}  // namespace bubblesim::app
