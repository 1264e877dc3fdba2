#include "sim/store/store_writer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/utf8.hpp"
#include "sim/store/store_schema.hpp"

namespace bubblesim::store {
namespace {

// ---- Texts from outside, as every database takes them: valid UTF-8 without NUL.

// Databases end texts at NUL.
bool storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos && is_utf8(text);
}

// Bytes that no database takes as text become U+FFFD.
std::string made_storable(std::string_view text) {
  std::string result = repaired_utf8(text);
  for (std::size_t at = result.find('\0'); at != std::string::npos; at = result.find('\0', at)) {
    result.replace(at, 1, kReplacementCharacter);
  }
  return result;
}

using Values = std::vector<SqlValue>;

/// Whole numbers of 64 bits without sign are kept as the same bits.
std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

SqlValue value_of(const observe::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* text = std::get_if<std::string>(&cell)) return std::string_view(*text);
  const auto* number = std::get_if<double>(&cell);
  if (number == nullptr || std::isnan(*number)) return std::monostate{};
  return *number;
}

bool fits(const observe::Cell& cell, observe::CellType type) {
  if (std::holds_alternative<std::monostate>(cell)) return true;
  switch (type) {
    case observe::CellType::kInteger: return std::holds_alternative<std::int64_t>(cell);
    case observe::CellType::kNumber: return std::holds_alternative<double>(cell);
    case observe::CellType::kText: break;
  }
  return std::holds_alternative<std::string>(cell);
}

/// Does `a` take the place of `b`, of the same key? The first that is done stays; of failures the
/// last.
bool replaces(const RunRecord& a, const RunRecord& b) {
  if (b.status == RunStatus::kDone) return false;
  return a.status == RunStatus::kDone || a.finished_unix_ns > b.finished_unix_ns;
}

/// Texts from outside: file names in reasons, names of machines.
constexpr std::string RunRecord::*kOutside[] = {&RunRecord::sweep, &RunRecord::reason,
                                                &RunRecord::host, &RunRecord::version};

struct Distinct {
  std::vector<const RunRecord*> records;  ///< one a key, in the order of keys
  std::vector<const RunRecord*> left_out;
};

/// In the order of keys: two writers that wait for each other's rows wait in one order. `changed`
/// holds those whose texts had to be.
Distinct distinct(std::span<const RunRecord> records, std::list<RunRecord>& changed) {
  std::map<std::string_view, const RunRecord*> by_key;
  Distinct result;
  for (const RunRecord& given : records) {
    const bool right = std::all_of(std::begin(kOutside), std::end(kOutside),
                                   [&](const auto member) { return storable(given.*member); });
    const RunRecord& record = right ? given : changed.emplace_back(given);
    for (const auto member : kOutside) {
      if (!right) changed.back().*member = made_storable(given.*member);
    }
    const auto [place, is_new] = by_key.emplace(record.run.key, &record);
    if (is_new) continue;
    const bool better = replaces(record, *place->second);
    result.left_out.push_back(better ? std::exchange(place->second, &record) : &record);
  }
  for (const auto& [key, record] : by_key) result.records.push_back(record);
  return result;
}

std::string_view status_text(RunStatus status) {
  return status == RunStatus::kDone ? "done" : "failed";
}

class Writer {
 public:
  explicit Writer(SqlDatabase& database) : database_(database) {}

  [[nodiscard]] Result<std::size_t> write(const Distinct& distinct) {
    const std::vector<const RunRecord*>& records = distinct.records;
    histograms_.clear();
    for (const RunRecord* record : records) histograms_.push_back(encode_histograms(*record));
    BUBBLESIM_RETURN_IF_ERROR(clear_failed(records));
    BUBBLESIM_ASSIGN_OR_RETURN(const auto runs, insert_runs(records));
    BUBBLESIM_RETURN_IF_ERROR(insert_parts(records, runs));
    BUBBLESIM_RETURN_IF_ERROR(insert_memberships(distinct, runs));
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [](const auto& run) { return run.has_value(); }));
  }

 private:
  using RunIds = std::vector<std::optional<std::int64_t>>;

  /// Failures that the records take the place of, with all that belongs to them.
  [[nodiscard]] Result<void> clear_failed(const std::vector<const RunRecord*>& records) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const auto statement,
        database_.prepare("DELETE FROM runs WHERE key = $1 AND status = 'failed' AND "
                          "finished_unix_ns < $2"));
    SqlParameters parameters{2, {}};
    for (const RunRecord* record : records) {
      const bool done = record->status == RunStatus::kDone;
      parameters.values.emplace_back(std::string_view(record->run.key));
      parameters.values.emplace_back(done ? std::numeric_limits<std::int64_t>::max()
                                          : record->finished_unix_ns);
    }
    return database_.run(statement, parameters, nullptr);
  }

  /// Row ids of those that were not there.
  [[nodiscard]] Result<RunIds> insert_runs(const std::vector<const RunRecord*>& records) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const auto statement,
        database_.prepare(insert_statement(store_table("runs")) +
                          " ON CONFLICT (key) DO NOTHING RETURNING run"));
    SqlParameters parameters{14, {}};
    parameters.values.reserve(records.size() * parameters.width);
    for (std::size_t i = 0; i < records.size(); ++i) {
      append_run(parameters.values, *records[i], record_digest(*records[i], histograms_[i]));
    }
    RunIds runs(records.size());
    BUBBLESIM_RETURN_IF_ERROR(
        database_.run(statement, parameters, [&](std::size_t set, const SqlRow& row) {
          runs[set] = row.integer(0);
        }));
    return runs;
  }

  static void append_run(Values& values, const RunRecord& record, std::uint64_t digest) {
    const PlannedRun& run = record.run;
    values.insert(values.end(),
                  {std::string_view(run.key), std::string_view(record.sweep),
                   as_signed(run.index), std::string_view(run.point), as_signed(run.seed),
                   std::int64_t{run.repetition}, status_text(record.status),
                   std::string_view(record.reason), std::string_view(run.config),
                   std::string_view(record.host), std::string_view(record.version),
                   record.finished_unix_ns, to_ns(record.cpu),
                   as_signed(digest)});
  }

  [[nodiscard]] Result<void> insert_parts(const std::vector<const RunRecord*>& records,
                                          const RunIds& runs) {
    Values settings, rows, latencies, counters;
    rows.reserve(records.size() * store_table("rows").columns.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (!runs[i]) continue;
      append_settings(settings, *runs[i], records[i]->run.settings);
      append_rows(rows, *runs[i], records[i]->rows);
      append_latencies(latencies, *runs[i], *records[i], histograms_[i]);
      append_counters(counters, *runs[i], records[i]->counters);
    }
    BUBBLESIM_RETURN_IF_ERROR(insert("settings", std::move(settings)));
    BUBBLESIM_RETURN_IF_ERROR(insert("rows", std::move(rows)));
    BUBBLESIM_RETURN_IF_ERROR(insert("latencies", std::move(latencies)));
    return insert("counters", std::move(counters));
  }

  /// Of records that are stored under another sweep, and of failures, which others may replace.
  [[nodiscard]] Result<void> insert_memberships(const Distinct& distinct, const RunIds& runs) {
    std::vector<Membership> failed, elsewhere;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const RunRecord& record = *distinct.records[i];
      const Membership member{record.sweep, &record.run};
      if (!runs[i]) elsewhere.push_back(member);
      if (runs[i] && record.status == RunStatus::kFailed) failed.push_back(member);
    }
    for (const RunRecord* record : distinct.left_out) {
      elsewhere.push_back({record->sweep, &record->run});
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto members, stored_elsewhere(database_, elsewhere));
    members.insert(members.end(), failed.begin(), failed.end());
    return write_memberships(database_, std::move(members));
  }

  static void append_settings(Values& values, std::int64_t run,
                              const std::vector<Setting>& settings) {
    std::int64_t place = 0;
    for (const Setting& setting : settings) {
      values.insert(values.end(), {run, place++, std::string_view(setting.pointer),
                                   std::string_view(setting.value)});
    }
  }

  static void append_rows(Values& values, std::int64_t run,
                          const std::vector<observe::ResultRow>& rows) {
    for (const observe::ResultRow& row : rows) {
      values.insert(values.end(), {run, std::int64_t{row.policy}, std::int64_t{row.filler}});
      for (const observe::Cell& cell : row.cells) values.push_back(value_of(cell));
    }
  }

  static void append_latencies(Values& values, std::int64_t run, const RunRecord& record,
                               const EncodedHistograms& histograms) {
    for (std::size_t i = 0; i < record.latencies.size(); ++i) {
      const RecordedLatency& latency = record.latencies[i];
      values.insert(values.end(),
                    {run, std::int64_t{latency.policy}, std::int64_t{latency.filler},
                     as_signed(latency.histogram.completed()),
                     as_signed(latency.histogram.unfinished()),
                     std::span<const std::uint8_t>(histograms[i])});
    }
  }

  static void append_counters(Values& values, std::int64_t run, const CounterSet& counters) {
    for (const auto& [name, entry] : counters) {
      values.insert(values.end(), {run, std::string_view(name), severity_name(entry.severity),
                                   as_signed(entry.count), std::string_view(entry.help)});
    }
  }

  [[nodiscard]] Result<void> insert(std::string_view table, Values&& values) {
    if (values.empty()) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(const auto statement,
                               database_.prepare(insert_statement(store_table(table))));
    const SqlParameters parameters{store_table(table).columns.size(), std::move(values)};
    return database_.run(statement, parameters, nullptr);
  }

  SqlDatabase& database_;
  std::vector<EncodedHistograms> histograms_;  ///< of each record
};

/// Twice the same policy and filler.
template <class Item>
bool repeats(const std::vector<Item>& items) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  return std::any_of(items.begin(), items.end(), [&](const Item& item) {
    return !seen.emplace(item.policy, item.filler).second;
  });
}

}  // namespace

Result<void> check_record(const RunRecord& record) {
  const std::string place = "run " + record.run.key;
  if (record.run.key.empty()) return fail({}, place, "found no key");
  if (repeats(record.rows) || repeats(record.latencies)) {
    return fail({}, place, "found two rows of one policy and filler");
  }
  const auto columns = observe::result_columns();
  for (const observe::ResultRow& row : record.rows) {
    if (row.cells.size() != columns.size()) {
      return fail({}, place, "found a row of " + std::to_string(row.cells.size()) +
                                 " cells, expected " + std::to_string(columns.size()));
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (fits(row.cells[i], columns[i].type)) continue;
      return fail({}, place, "found a value of another type in column " +
                                 std::string(columns[i].name));
    }
  }
  return {};
}

Result<std::size_t> write_records(SqlDatabase& database, std::span<const RunRecord> records) {
  std::list<RunRecord> changed;
  return Writer(database).write(distinct(records, changed));
}

}  // namespace bubblesim::store
