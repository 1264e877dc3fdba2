#include "sim/store/membership.hpp"

#include <algorithm>
#include <list>
#include <tuple>
#include <unordered_map>

#include "sim/base/json.hpp"
#include "sim/store/record_digest.hpp"
#include "sim/store/store_schema.hpp"

namespace bubblesim::store {
namespace {

struct OwnMembership {
  std::string sweep;
  PlannedRun run;
};

}  // namespace

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
  BUBBLESIM_ASSIGN_OR_RETURN(const auto statement,
                             database.prepare("SELECT sweep FROM runs WHERE key = $1"));
  SqlParameters parameters{1, {}};
  for (const Membership& member : members) {
    parameters.values.emplace_back(std::string_view(member.run->key));
  }
  BUBBLESIM_RETURN_IF_ERROR(
      database.run(statement, parameters, [&](std::size_t set, const SqlRow& row) {
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
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto statement,
      database.prepare(insert_statement(table) + " ON CONFLICT (sweep, key) DO NOTHING"));
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
  return database.run(statement, parameters, nullptr);
}

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

}  // namespace bubblesim::store
