#include "sim/store/page_query.hpp"

namespace bubblesim::store {
namespace {

/// Of the lines of `table` that come next and pass the filter.
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

}  // namespace

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

}  // namespace bubblesim::store
