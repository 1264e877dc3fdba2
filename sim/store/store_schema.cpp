#include "sim/store/store_schema.hpp"

#include <algorithm>
#include <list>
#include <tuple>
#include <unordered_map>

#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/number_text.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::store {

std::string settings_text_of(const std::vector<Setting>& settings) {
  Json list = Json::array();
  for (const Setting& setting : settings) {
    list.push_back(Json::array({setting.pointer, setting.value}));
  }
  return compact_text(list);
}

std::optional<std::vector<Setting>> parse_settings(const std::string& text) {
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<Setting> settings;
  for (const Json& pair : list) {
    const bool right =
        pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string();
    if (!right) return std::nullopt;
    settings.push_back({pair[0].get<std::string>(), pair[1].get<std::string>()});
  }
  return settings;
}

Result<std::vector<Membership>> stored_elsewhere(SqlDatabase& database,
                                                 const std::vector<Membership>& members) {
  std::vector<Membership> found;
  if (members.empty()) return found;
  SqlParameters parameters{1, {}};
  for (const Membership& member : members) {
    parameters.values.emplace_back(std::string_view(member.run->key));
  }
  BUBBLESIM_RETURN_IF_ERROR(database.run(
      "SELECT sweep FROM runs WHERE key = $1", parameters, [&](std::size_t set, const SqlRow& row) {
        if (row.text(0) != members[set].sweep) found.push_back(members[set]);
      }));
  return found;
}

Result<void> write_memberships(SqlDatabase& database, std::vector<Membership> members) {
  if (members.empty()) return {};
  // Two writers that wait for each other's lines wait in one order.
  std::sort(members.begin(), members.end(), [](const Membership& a, const Membership& b) {
    return std::tie(a.sweep, a.run->key) < std::tie(b.sweep, b.run->key);
  });
  const StoreTable& table = store_table("memberships");
  SqlParameters parameters{table.columns.size(), {}};
  std::list<std::string> texts;
  for (const Membership& member : members) {
    const PlannedRun& run = *member.run;
    const std::string_view settings = texts.emplace_back(settings_text_of(run.settings));
    parameters.values.insert(
        parameters.values.end(),
        {member.sweep, std::string_view(run.key), static_cast<std::int64_t>(run.index),
         std::string_view(run.point), std::int64_t{run.repetition}, settings,
         static_cast<std::int64_t>(membership_digest(member.sweep, run))});
  }
  return database.run(insert_statement(table) + " ON CONFLICT (sweep, key) DO NOTHING", parameters,
                      nullptr);
}

namespace {

struct OwnMembership {
  std::string sweep;
  PlannedRun run;
};

/// Adds the lines for failures that a store of version 1 lacks.
Result<void> write_memberships_of_failures(SqlDatabase& database) {
  std::list<OwnMembership> failures;
  std::unordered_map<std::int64_t, OwnMembership*> by_run;
  BUBBLESIM_RETURN_IF_ERROR(database.query(
      "SELECT run, sweep, key, plan_index, point, repetition FROM runs WHERE status = 'failed'",
      [&](const SqlRow& row) {
        OwnMembership& own = failures.emplace_back();
        own.sweep = row.text(1);
        own.run.key = row.text(2);
        own.run.index = static_cast<std::uint64_t>(row.integer(3));
        own.run.point = row.text(4);
        own.run.repetition = static_cast<std::uint32_t>(row.integer(5));
        by_run.emplace(row.integer(0), &own);
      }));
  BUBBLESIM_RETURN_IF_ERROR(database.query(
      "SELECT run, pointer, value FROM settings WHERE run IN (SELECT run FROM runs WHERE "
      "status = 'failed') ORDER BY run, place",
      [&](const SqlRow& row) {
        const auto found = by_run.find(row.integer(0));
        if (found == by_run.end()) return;
        found->second->run.settings.push_back({row.text(1), row.text(2)});
      }));
  std::vector<Membership> members;
  for (const OwnMembership& own : failures) members.push_back({own.sweep, &own.run});
  return write_memberships(database, std::move(members));
}

constexpr std::string_view kKind = "bubblesim results store";

StoreType type_of(observe::CellType type) {
  switch (type) {
    case observe::CellType::kInteger: return StoreType::kInteger;
    case observe::CellType::kNumber: return StoreType::kNumber;
    case observe::CellType::kText: break;
  }
  return StoreType::kText;
}

std::vector<StoreColumn> row_columns() {
  std::vector<StoreColumn> columns{{"run", StoreType::kInteger},
                                   {"policy_index", StoreType::kInteger},
                                   {"filler_index", StoreType::kInteger}};
  for (const observe::ResultColumn& column : observe::result_columns()) {
    columns.push_back({std::string(column.name), type_of(column.type), false});
  }
  return columns;
}

std::vector<StoreTable> make_tables() {
  using enum StoreType;
  return {
      {"meta", {{"name"}, {"value"}}, {"name"}, false},
      {"runs",
       {{"run", kRowId},
        {"key"},
        {"sweep"},
        {"plan_index", kInteger},
        {"point"},
        {"seed", kInteger},
        {"repetition", kInteger},
        {"status"},
        {"reason"},
        {"config"},
        {"host"},
        {"version"},
        {"finished_unix_ns", kInteger},
        {"cpu_ns", kInteger},
        {"digest", kInteger}},
       {},
       false},
      {"settings",
       {{"run", kInteger}, {"place", kInteger}, {"pointer"}, {"value"}},
       {"run", "place"}},
      {"rows", row_columns(), {"run", "policy_index", "filler_index"}},
      {"latencies",
       {{"run", kInteger},
        {"policy_index", kInteger},
        {"filler_index", kInteger},
        {"completed", kInteger},
        {"unfinished", kInteger},
        {"histogram", kBytes}},
       {"run", "policy_index", "filler_index"}},
      {"counters",
       {{"run", kInteger}, {"name"}, {"severity"}, {"count", kInteger}, {"help"}},
       {"run", "name"}},
      {"memberships",
       {{"sweep"},
        {"key"},
        {"plan_index", kInteger},
        {"point"},
        {"repetition", kInteger},
        {"settings"},
        {"digest", kInteger}},
       {"sweep", "key"},
       false,
       2},
  };
}

std::string_view type_name(StoreType type, const SqlDialect& dialect) {
  switch (type) {
    case StoreType::kRowId: return dialect.row_id;
    case StoreType::kInteger: return dialect.integer;
    case StoreType::kNumber: return dialect.number;
    case StoreType::kBytes: return dialect.bytes;
    case StoreType::kText: break;
  }
  return dialect.text;
}

std::string column_definition(const StoreColumn& column, const SqlDialect& dialect) {
  std::string sql = "\"" + column.name + "\" " + std::string(type_name(column.type, dialect));
  if (column.required && column.type != StoreType::kRowId) sql += " NOT NULL";
  return sql;
}

std::string create_table(const StoreTable& table, const SqlDialect& dialect) {
  std::string sql = "CREATE TABLE " + table.name + "(";
  for (const StoreColumn& column : table.columns) {
    sql += column_definition(column, dialect);
    const bool refers = table.of_run && &column == &table.columns.front();
    sql += refers ? " REFERENCES runs(run) ON DELETE CASCADE, " : ", ";
  }
  if (table.key.empty()) {
    sql += "UNIQUE(key)";
  } else {
    sql += "PRIMARY KEY(";
    for (const std::string& name : table.key) sql += name + (name == table.key.back() ? ")" : ", ");
  }
  sql += ") ";
  // Wide rows stay in an ordinary table: those stored by key want short rows.
  const bool by_key = !table.key.empty() && table.name != "rows" && table.name != "latencies";
  return sql + std::string(by_key ? dialect.keyed_table_end : dialect.table_end) + ";";
}

constexpr std::string_view kMembershipIndex =
    "CREATE INDEX memberships_in_order ON memberships(sweep, plan_index, key);";

/// What people and other programs read: a line a policy, filler and sweep with the run it is of.
std::string create_view() {
  std::string cells = "rows.policy_index, rows.filler_index";
  for (const observe::ResultColumn& column : observe::result_columns()) {
    cells += ", rows.\"" + std::string(column.name) + "\"";
  }
  return "CREATE VIEW results AS SELECT runs.key, runs.sweep, runs.plan_index, runs.point, "
         "runs.repetition, " + cells + " FROM runs JOIN rows ON rows.run = runs.run "
         "UNION ALL SELECT m.key, m.sweep, m.plan_index, m.point, m.repetition, " + cells +
         " FROM memberships m JOIN runs ON runs.key = m.key AND runs.sweep <> m.sweep "
         "JOIN rows ON rows.run = runs.run;";
}

Result<void> create_all(SqlDatabase& database) {
  std::string sql;
  for (const StoreTable& table : store_tables()) sql += create_table(table, database.dialect());
  sql += "CREATE INDEX runs_in_order ON runs(sweep, plan_index, key);";
  sql += kMembershipIndex;
  sql += create_view();
  sql += "INSERT INTO meta(name, value) VALUES ('kind', '" + std::string(kKind) +
         "'), ('schema_version', '" + std::to_string(kStoreSchemaVersion) + "');";
  return database.execute(sql);
}

/// The first column of the answer to a query about one thing.
Result<std::vector<std::string>> texts_of(SqlDatabase& database, std::string_view query,
                                          std::string_view about) {
  std::vector<std::string> texts;
  BUBBLESIM_RETURN_IF_ERROR(database.run(
      std::string(query), {1, {about}},
      [&](std::size_t, const SqlRow& row) { texts.push_back(row.text(0)); }));
  return texts;
}

Result<std::string> meta_value(SqlDatabase& database, std::string_view name) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto values, texts_of(database, "SELECT value FROM meta WHERE name = $1", name));
  return values.empty() ? std::string() : values.back();
}

/// The version found.
Result<int> check_version(SqlDatabase& database) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string kind, meta_value(database, "kind"));
  if (kind != kKind) return fail(database.name(), "meta", "is no results store of bubblesim");
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, meta_value(database, "schema_version"));
  const auto version = parse_number<int>(text);
  if (!version || *version < 1) {
    return fail(database.name(), "meta", "found schema version \"" + text +
                                             "\", expected a number from 1 on: is damaged");
  }
  if (*version > kStoreSchemaVersion) {
    return fail(database.name(), "meta",
                "was written by a newer bubblesim: found schema version " + text +
                    ", this program reads up to " + std::to_string(kStoreSchemaVersion));
  }
  return *version;
}

/// Tables of this version for a store of an older one.
Result<void> add_new_tables(SqlDatabase& database, int version) {
  if (version >= 2) return {};
  BUBBLESIM_RETURN_IF_ERROR(
      database.execute(create_table(store_table("memberships"), database.dialect()) +
                       std::string(kMembershipIndex) + "UPDATE meta SET value = '" +
                       std::to_string(kStoreSchemaVersion) + "' WHERE name = 'schema_version';"));
  return write_memberships_of_failures(database);
}

bool known_column(const StoreTable& table, const std::string& name) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const StoreColumn& column) { return column.name == name; });
}

/// A table's columns against those that this program knows. Returns whether it was given some.
Result<bool> check_columns(SqlDatabase& database, const StoreTable& table, StoreAccess access) {
  bool added = false;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto found, columns_of(database, table.name));
  for (const std::string& name : found) {
    if (known_column(table, name)) continue;
    return fail(database.name(), table.name,
                "was written by a newer bubblesim: found column \"" + name +
                    "\", which this program does not know");
  }
  for (const StoreColumn& column : table.columns) {
    if (std::find(found.begin(), found.end(), column.name) != found.end()) continue;
    if (table.name != "rows" || column.required) {
      return fail(database.name(), table.name, "has no column \"" + column.name + "\": is damaged");
    }
    if (access == StoreAccess::kRead) continue;
    const std::string definition = column_definition(column, database.dialect());
    BUBBLESIM_RETURN_IF_ERROR(database.execute("ALTER TABLE rows ADD COLUMN " + definition));
    added = true;
  }
  return added;
}

Result<void> create_or_check(SqlDatabase& database, StoreAccess access) {
  const std::string lock(database.dialect().lock_schema);
  if (access == StoreAccess::kWrite && !lock.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(database.execute(lock));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto tables,
                             texts_of(database, database.dialect().has_table, "meta"));
  const bool there = !tables.empty();
  if (!there && access == StoreAccess::kWrite) return create_all(database);
  if (!there) return fail(database.name(), {}, "is no results store: found no table meta");
  BUBBLESIM_ASSIGN_OR_RETURN(int version, check_version(database));
  bool changed = false;
  if (access == StoreAccess::kWrite && version < kStoreSchemaVersion) {
    BUBBLESIM_RETURN_IF_ERROR(add_new_tables(database, version));
    version = kStoreSchemaVersion;
    changed = true;
  }
  for (const StoreTable& table : store_tables()) {
    if (table.since > version) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(const bool added, check_columns(database, table, access));
    changed = changed || added;
  }
  if (!changed) return {};
  return database.execute("DROP VIEW IF EXISTS results; " + create_view());
}

}  // namespace

const std::vector<StoreTable>& store_tables() {
  static const std::vector<StoreTable> tables = make_tables();
  return tables;
}

const StoreTable& store_table(std::string_view name) {
  for (const StoreTable& table : store_tables()) {
    if (table.name == name) return table;
  }
  BUBBLESIM_CHECK(false, "no such table of the store");
  return store_tables().front();
}

std::string insert_statement(const StoreTable& table) {
  std::string names, places;
  int place = 0;
  for (const StoreColumn& column : table.columns) {
    if (column.type == StoreType::kRowId) continue;
    const std::string_view comma = place == 0 ? "" : ", ";
    names += std::string(comma) + "\"" + column.name + "\"";
    places += std::string(comma) + "$" + std::to_string(++place);
  }
  return "INSERT INTO " + table.name + "(" + names + ") VALUES (" + places + ")";
}

Result<std::vector<std::string>> columns_of(SqlDatabase& database, const std::string& table) {
  return texts_of(database, database.dialect().columns_of, table);
}

Result<void> prepare_schema(SqlDatabase& database, StoreAccess access) {
  const bool write = access == StoreAccess::kWrite;
  return in_transaction(database, write ? SqlTransaction::kWrite : SqlTransaction::kRead,
                        [&] { return create_or_check(database, access); });
}

}  // namespace bubblesim::store
