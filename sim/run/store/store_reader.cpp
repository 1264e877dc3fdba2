#include "sim/run/store/store_reader.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "sim/base/json.hpp"

namespace bubblesim::run {
namespace {

constexpr std::size_t kPageRuns = 200;

/// Where the next page begins.
struct Position {
  std::string sweep;
  std::int64_t index = std::numeric_limits<std::int64_t>::min();
  std::string key;
};

std::optional<Severity> severity_of(std::string_view name) {
  for (const Severity severity :
       {Severity::kInfo, Severity::kNotice, Severity::kLoss, Severity::kError}) {
    if (severity_name(severity) == name) return severity;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(SqlDatabase& database, const RowFilter& filter, const RecordParts& parts,
         const std::vector<std::string>& row_columns)
      : database_(database), filter_(filter), parts_(parts), row_columns_(row_columns) {
    for (const Setting& setting : filter.settings) {
      wanted_.emplace_back(setting.pointer, Json::parse(setting.value, nullptr, false));
    }
  }

  [[nodiscard]] Result<void> read(const std::function<Result<void>(StoredRecord&)>& visit) {
    while (true) {
      BUBBLESIM_RETURN_IF_ERROR(read_page());
      if (page_.empty()) return {};
      BUBBLESIM_RETURN_IF_ERROR(read_parts());
      for (StoredRecord& record : page_) {
        if (!has_settings(record.record.run.settings)) continue;
        BUBBLESIM_RETURN_IF_ERROR(visit(record));
      }
      if (page_.size() < kPageRuns) return {};
    }
  }

 private:
  [[nodiscard]] std::string page_query() const {
    std::string sql =
        "SELECT run, key, sweep, plan_index, point, seed, repetition, status, reason, config, "
        "host, version, finished_unix_ns, cpu_ns, digest FROM runs WHERE "
        "(sweep, plan_index, key) > ($1, $2, $3)";
    for (std::size_t i = 0; i < filter_.sweeps.size(); ++i) {
      sql += (i == 0 ? " AND sweep IN ($" : ", $") + std::to_string(i + 4);
    }
    if (!filter_.sweeps.empty()) sql += ')';
    const std::size_t next = filter_.sweeps.size() + 4;
    if (!filter_.key.empty()) {
      sql += " AND key >= $" + std::to_string(next) + " AND key < $" + std::to_string(next + 1);
    }
    return sql + " ORDER BY sweep, plan_index, key LIMIT " + std::to_string(kPageRuns);
  }

  [[nodiscard]] Result<void> read_page() {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto statement, database_.prepare(page_query()));
    page_.clear();
    by_run_.clear();
    ids_.clear();
    const Position from = next_;
    SqlParameters parameters{3 + filter_.sweeps.size(),
                             {std::string_view(from.sweep), from.index,
                              std::string_view(from.key)}};
    for (const std::string& sweep : filter_.sweeps) {
      parameters.values.emplace_back(std::string_view(sweep));
    }
    const std::string beyond = filter_.key + '~';  // after all digits
    if (!filter_.key.empty()) {
      parameters.width += 2;
      parameters.values.insert(parameters.values.end(),
                               {std::string_view(filter_.key), std::string_view(beyond)});
    }
    return database_.run(statement, parameters,
                         [this](std::size_t, const SqlRow& row) { take_run(row); });
  }

  void take_run(const SqlRow& row) {
    by_run_.emplace(row.integer(0), page_.size());
    ids_ += (ids_.empty() ? "" : ",") + std::to_string(row.integer(0));
    StoredRecord& stored = page_.emplace_back();
    RunRecord& record = stored.record;
    record.run.key = row.text(1);
    record.sweep = row.text(2);
    record.run.index = static_cast<std::uint64_t>(row.integer(3));
    record.run.point = row.text(4);
    record.run.seed = static_cast<std::uint64_t>(row.integer(5));
    record.run.repetition = static_cast<std::uint32_t>(row.integer(6));
    record.status = row.text(7) == "done" ? RunStatus::kDone : RunStatus::kFailed;
    record.reason = row.text(8);
    record.run.config = row.text(9);
    record.host = row.text(10);
    record.version = row.text(11);
    record.finished_unix_ns = row.integer(12);
    record.cpu = Duration{row.integer(13)};
    stored.digest = row.integer(14);
    next_ = {record.sweep, row.integer(3), record.run.key};
  }

  [[nodiscard]] Result<void> read_parts() {
    if (parts_.settings) BUBBLESIM_RETURN_IF_ERROR(read_settings());
    if (parts_.rows) BUBBLESIM_RETURN_IF_ERROR(read_rows());
    if (parts_.latencies) BUBBLESIM_RETURN_IF_ERROR(read_latencies());
    if (parts_.counters) BUBBLESIM_RETURN_IF_ERROR(read_counters());
    return {};
  }

  /// Lines of a table that belong to the page; the first column is the run.
  template <class Take>
  [[nodiscard]] Result<void> children(const std::string& what, const std::string& order,
                                      const Take& take) {
    const std::string sql = "SELECT run, " + what + " WHERE run IN (" + ids_ +
                            ") ORDER BY run, " + order;
    return database_.query(sql, [&](const SqlRow& row) {
      const auto found = by_run_.find(row.integer(0));
      if (found != by_run_.end()) take(row, page_[found->second].record);
    });
  }

  [[nodiscard]] Result<void> read_settings() {
    return children("pointer, value FROM settings", "place",
                    [](const SqlRow& row, RunRecord& record) {
                      record.run.settings.push_back({row.text(1), row.text(2)});
                    });
  }

  [[nodiscard]] Result<void> read_rows() {
    std::string what = "policy_index, filler_index";
    const auto columns = observe::result_columns();
    std::vector<int> places(columns.size(), -1);
    int place = 3;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto there = std::find(row_columns_.begin(), row_columns_.end(), columns[i].name);
      if (there == row_columns_.end()) continue;
      what += ", \"" + *there + "\"";
      places[i] = place++;
    }
    return children(what + " FROM rows", "policy_index, filler_index",
                    [&](const SqlRow& row, RunRecord& record) {
                      record.rows.push_back(row_of(row, places));
                    });
  }

  static observe::ResultRow row_of(const SqlRow& row, const std::vector<int>& places) {
    observe::ResultRow result{static_cast<std::uint32_t>(row.integer(1)),
                              static_cast<std::uint32_t>(row.integer(2)),
                              {}};
    const auto columns = observe::result_columns();
    result.cells.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (places[i] < 0 || row.absent(places[i])) continue;
      switch (columns[i].type) {
        case observe::CellType::kInteger: result.cells[i] = row.integer(places[i]); break;
        case observe::CellType::kNumber: result.cells[i] = row.number(places[i]); break;
        case observe::CellType::kText: result.cells[i] = row.text(places[i]); break;
      }
    }
    return result;
  }

  [[nodiscard]] Result<void> read_latencies() {
    std::optional<Error> fault;
    BUBBLESIM_RETURN_IF_ERROR(
        children("policy_index, filler_index, histogram FROM latencies",
                 "policy_index, filler_index", [&](const SqlRow& row, RunRecord& record) {
                   auto histogram = histogram_of(database_, record.run.key, row.bytes(3));
                   if (!histogram) {
                     fault = std::move(histogram).error();
                     return;
                   }
                   record.latencies.push_back({static_cast<std::uint32_t>(row.integer(1)),
                                               static_cast<std::uint32_t>(row.integer(2)),
                                               std::move(*histogram)});
                 }));
    if (fault) return tl::unexpected<Error>(*fault);
    return {};
  }

  [[nodiscard]] Result<void> read_counters() {
    std::optional<Error> fault;
    BUBBLESIM_RETURN_IF_ERROR(
        children("name, severity, count, help FROM counters", "name",
                 [&](const SqlRow& row, RunRecord& record) {
                   const auto severity = severity_of(row.text(2));
                   if (!severity) {
                     fault = Error{database_.name(), "run " + record.run.key,
                                   "found severity \"" + row.text(2) + "\": is damaged"};
                     return;
                   }
                   record.counters.add(row.text(1),
                                       CounterSet::Entry{*severity, row.text(4),
                                                         static_cast<std::uint64_t>(
                                                             row.integer(3))});
                 }));
    if (fault) return tl::unexpected<Error>(*fault);
    return {};
  }

  /// All that are wanted; values compared as JSON, so that 0.5 is 0.50.
  [[nodiscard]] bool has_settings(const std::vector<Setting>& settings) const {
    return std::all_of(wanted_.begin(), wanted_.end(), [&](const auto& wanted) {
      return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
        return setting.pointer == wanted.first &&
               Json::parse(setting.value, nullptr, false) == wanted.second;
      });
    });
  }

  SqlDatabase& database_;
  const RowFilter& filter_;
  RecordParts parts_;
  const std::vector<std::string>& row_columns_;
  std::vector<std::pair<std::string, Json>> wanted_;
  Position next_;
  std::vector<StoredRecord> page_;
  std::unordered_map<std::int64_t, std::size_t> by_run_;
  std::string ids_;
};

bool names_cell(const observe::ResultRow& row, std::string_view column,
                const std::vector<std::string>& names) {
  if (names.empty()) return true;
  const auto columns = observe::result_columns();
  const auto place = std::find_if(columns.begin(), columns.end(),
                                  [&](const auto& c) { return c.name == column; });
  const auto& cell = row.cells[static_cast<std::size_t>(place - columns.begin())];
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr && std::find(names.begin(), names.end(), *text) != names.end();
}

}  // namespace

bool passes(const observe::ResultRow& row, const RowFilter& filter) {
  return names_cell(row, "policy", filter.policies) && names_cell(row, "filler", filter.fillers);
}

Result<observe::LatencyHistogram> histogram_of(const SqlDatabase& database, const std::string& key,
                                               std::span<const std::uint8_t> bytes) {
  auto histogram = observe::LatencyHistogram::decode(bytes);
  if (histogram) return histogram;
  return fail(database.name(), "run " + key, histogram.error().message + ": is damaged");
}

Result<void> read_records(SqlDatabase& database, const RowFilter& filter, const RecordParts& parts,
                          const std::vector<std::string>& row_columns,
                          const std::function<Result<void>(StoredRecord&)>& visit) {
  BUBBLESIM_RETURN_IF_ERROR(database.begin(SqlTransaction::kRead));
  auto result = Reader(database, filter, parts, row_columns).read(visit);
  if (result) result = database.commit();
  if (!result) database.roll_back();
  return result;
}

}  // namespace bubblesim::run
