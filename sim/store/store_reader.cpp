#include "sim/store/store_reader.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/store/run_record.hpp"
#include "sim/store/store_schema.hpp"

namespace bubblesim::store {
namespace {

// ---- The question that the reader asks for each page of runs.

constexpr std::size_t kPageRuns = 200;

/// The condition that lines of `table` come next and pass the filter.
std::string condition(const std::string& table, const RowFilter& filter) {
  std::string sql = "(" + table + ".sweep, " + table + ".plan_index, " + table +
                    ".key) > ($1, $2, $3)";
  for (std::size_t i = 0; i < filter.sweeps.size(); ++i) {
    sql += (i == 0 ? " AND " + table + ".sweep IN ($" : ", $") + std::to_string(i + 4);
  }
  if (!filter.sweeps.empty()) sql += ')';
  const std::size_t next = filter.sweeps.size() + 4;
  if (!filter.key.empty()) {
    sql += " AND " + table + ".key >= $" + std::to_string(next) + " AND " + table + ".key < $" +
           std::to_string(next + 1);
  }
  return sql;
}

// The lines after sweep $1, index $2, key $3 in that order. $4 and on: the filter's sweeps, then
// the keys between which its key lies. Columns: sweep, plan_index and key as shown, 14 of `runs`,
// then point, repetition, settings and digest of a membership, absent where the run is shown as
// stored.
std::string page_query(const RowFilter& filter, RunsOf runs_of) {
  static const std::string kOfRun =
      "runs.status, runs.reason, runs.config, runs.host, runs.version, runs.finished_unix_ns, "
      "runs.cpu_ns, runs.digest, runs.run, runs.sweep, runs.plan_index, runs.point, "
      "runs.repetition, runs.seed";
  std::string sql = "SELECT runs.sweep, runs.plan_index, runs.key, " + kOfRun +
                    ", NULL, NULL, NULL, NULL FROM runs WHERE " + condition("runs", filter);
  // In this order: memberships are few, and each has one run.
  if (runs_of == RunsOf::kEachSweep) {
    sql += " UNION ALL SELECT memberships.sweep, memberships.plan_index, memberships.key, " +
           kOfRun + ", memberships.point, memberships.repetition, memberships.settings, "
           "memberships.digest FROM memberships CROSS JOIN runs WHERE "
           "runs.key = memberships.key AND runs.sweep <> memberships.sweep AND " +
           condition("memberships", filter);
  }
  return sql + " ORDER BY 1, 2, 3 LIMIT " + std::to_string(kPageRuns);
}

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

/// A run as stored, with its stored digest.
struct StoredRecord {
  RunRecord record;
  std::int64_t digest = 0;
  /// If another sweep stored the record, the sweep that it was read for: its name, and the run's
  /// index, point, repetition and settings in it.
  std::optional<std::pair<std::string, PlannedRun>> member;
};

/// Replaces the record's sweep by `member`.
void relabel(StoredRecord& stored) {
  if (!stored.member) return;
  auto& [sweep, run] = *stored.member;
  run.seed = stored.record.run.seed;
  run.config = std::move(stored.record.run.config);
  stored.record.run = std::move(run);
  stored.record.sweep = std::move(sweep);
}

class Reader {
 public:
  Reader(SqlDatabase& database, const RowFilter& filter, RunsOf runs_of, const StoreShape& shape)
      : database_(database), filter_(filter), shape_(shape),
        runs_of_(shape.memberships ? runs_of : RunsOf::kFirstSweep) {
    for (const Setting& setting : filter.settings) {
      wanted_.emplace_back(setting.pointer, Json::parse(setting.value, nullptr, false));
    }
  }

  [[nodiscard]] Result<void> read(const std::function<void(RunRecord&)>& visit) {
    while (true) {
      BUBBLESIM_RETURN_IF_ERROR(read_page());
      if (page_.empty()) return {};
      BUBBLESIM_RETURN_IF_ERROR(read_parts());
      for (StoredRecord& record : page_) {
        if (!has_settings(record.member ? record.member->second.settings
                                        : record.record.run.settings)) {
          continue;
        }
        BUBBLESIM_RETURN_IF_ERROR(check(record));
        relabel(record);
        visit(record.record);
      }
      if (page_.size() < kPageRuns) return {};
    }
  }

 private:
  [[nodiscard]] Result<void> read_page() {
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
    BUBBLESIM_RETURN_IF_ERROR(
        database_.run(page_query(filter_, runs_of_), parameters,
                      [this](std::size_t, const SqlRow& row) { take_run(row); }));
    return damage();
  }

  [[nodiscard]] Result<void> damage() const {
    if (damaged_) return tl::unexpected<Error>(*damaged_);
    return {};
  }

  void take_run(const SqlRow& row) {
    const std::int64_t run = row.integer(11);
    by_run_.emplace(run, page_.size());
    ids_ += (ids_.empty() ? "" : ",") + std::to_string(run);
    StoredRecord& stored = page_.emplace_back();
    RunRecord& record = stored.record;
    next_ = {row.text(0), row.integer(1), row.text(2)};
    record.run.key = next_.key;
    record.status = row.text(3) == "done" ? RunStatus::kDone : RunStatus::kFailed;
    record.reason = row.text(4);
    record.run.config = row.text(5);
    record.host = row.text(6);
    record.version = row.text(7);
    record.finished_unix_ns = row.integer(8);
    record.cpu = Duration{row.integer(9)};
    stored.digest = row.integer(10);
    record.sweep = row.text(12);
    record.run.index = static_cast<std::uint64_t>(row.integer(13));
    record.run.point = row.text(14);
    record.run.repetition = static_cast<std::uint32_t>(row.integer(15));
    record.run.seed = static_cast<std::uint64_t>(row.integer(16));
    if (!row.absent(19)) take_member(row, stored);
  }

  void take_member(const SqlRow& row, StoredRecord& stored) {
    PlannedRun run;
    run.key = next_.key;
    run.index = static_cast<std::uint64_t>(next_.index);
    run.point = row.text(17);
    run.repetition = static_cast<std::uint32_t>(row.integer(18));
    auto settings = parse_settings(row.text(19));
    if (settings) run.settings = std::move(*settings);
    const auto digest = static_cast<std::int64_t>(membership_digest(next_.sweep, run));
    if (!settings || digest != row.integer(20)) {
      damaged_ = Error{database_.name(), "run " + run.key + " of sweep " + next_.sweep,
                       "does not have the check sum that it was stored with: is damaged"};
    }
    stored.member.emplace(next_.sweep, std::move(run));
  }

  [[nodiscard]] Result<void> read_parts() {
    BUBBLESIM_RETURN_IF_ERROR(read_settings());
    BUBBLESIM_RETURN_IF_ERROR(read_rows());
    BUBBLESIM_RETURN_IF_ERROR(read_latencies());
    return read_counters();
  }

  [[nodiscard]] Result<void> check(const StoredRecord& stored) const {
    const bool same = static_cast<std::int64_t>(record_digest(stored.record)) == stored.digest;
    if (same) return {};
    return fail(database_.name(), "run " + stored.record.run.key,
                "does not have the check sum that it was stored with: is damaged");
  }

  /// Lines of a table that belong to the page; the first column is the run.
  template <class Take>
  [[nodiscard]] Result<void> children(const std::string& what, const std::string& order,
                                      const Take& take) {
    const std::string sql = "SELECT run, " + what + " WHERE run IN (" + ids_ +
                            ") ORDER BY run, " + order;
    BUBBLESIM_RETURN_IF_ERROR(database_.query(sql, [&](const SqlRow& row) {
      const auto [first, last] = by_run_.equal_range(row.integer(0));
      for (auto entry = first; entry != last; ++entry) take(row, page_[entry->second].record);
    }));
    return damage();
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
      const auto there = std::ranges::find(shape_.row_columns, columns[i].name);
      if (there == shape_.row_columns.end()) continue;
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
    return children("policy_index, filler_index, histogram FROM latencies",
                    "policy_index, filler_index", [&](const SqlRow& row, RunRecord& record) {
                      auto histogram = observe::LatencyHistogram::decode(row.bytes(3));
                      if (!histogram) {
                        damaged_ = Error{database_.name(), "run " + record.run.key,
                                         histogram.error().message + ": is damaged"};
                        return;
                      }
                      record.latencies.push_back({static_cast<std::uint32_t>(row.integer(1)),
                                                  static_cast<std::uint32_t>(row.integer(2)),
                                                  std::move(*histogram)});
                    });
  }

  [[nodiscard]] Result<void> read_counters() {
    return children("name, severity, count, help FROM counters", "name",
                    [&](const SqlRow& row, RunRecord& record) {
                      const auto severity = severity_of(row.text(2));
                      if (!severity) {
                        damaged_ = Error{database_.name(), "run " + record.run.key,
                                         "found severity \"" + row.text(2) + "\": is damaged"};
                        return;
                      }
                      record.counters.add(
                          row.text(1), {*severity, row.text(4),
                                        static_cast<std::uint64_t>(row.integer(3))});
                    });
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
  const StoreShape& shape_;
  RunsOf runs_of_;
  std::optional<Error> damaged_;
  std::vector<std::pair<std::string, Json>> wanted_;
  Position next_;
  std::vector<StoredRecord> page_;
  /// One line in `runs` may stand in a page under several sweeps.
  std::unordered_multimap<std::int64_t, std::size_t> by_run_;
  std::string ids_;
};

bool names_cell(const observe::ResultRow& row, std::string_view column,
                const std::vector<std::string>& names) {
  return names.empty() || std::ranges::find(names, text_in(row, column)) != names.end();
}

}  // namespace

bool passes(const observe::ResultRow& row, const RowFilter& filter) {
  return names_cell(row, "policy", filter.policies) && names_cell(row, "filler", filter.fillers);
}

Result<void> read_records(SqlDatabase& database, const RowFilter& filter, RunsOf runs_of,
                          const StoreShape& shape,
                          const std::function<void(RunRecord&)>& visit) {
  return in_transaction(database, SqlTransaction::kRead, [&] {
    return Reader(database, filter, runs_of, shape).read(visit);
  });
}

}  // namespace bubblesim::store
