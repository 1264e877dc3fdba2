// The table of language-model servers: what users wait for, token by token.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <vector>

#include "sim/observe/report_servers.hpp"

namespace bubblesim::observe {
namespace {

struct ServerRow {
  const PolicyResult* policy = nullptr;
  const FillerResult* filler = nullptr;
  std::string label;
  std::optional<LatencySummary> ttft;
  std::optional<LatencySummary> tpot;
};

struct ServerColumn {
  const char* title;
  Columns shown;  ///< kFew: in every table
  std::string (*cell)(const ServerRow& row);
  Align aligned = Align::kRight;
};

using Distribution = std::optional<LatencySummary> ServerRow::*;

template <Distribution kOf, LatencyValue LatencySummary::*kMember>
std::string wait_cell(const ServerRow& row) {
  const std::optional<LatencySummary>& summary = row.*kOf;
  if (!summary) return "-";
  const ServerResult& server = *row.filler->server;
  const LatencyDistribution& all = kOf == &ServerRow::ttft ? server.ttft : server.tpot;
  return percentile_cell((*summary).*kMember, all.completed() + all.unfinished());
}

std::string goodput_cell(const ServerRow& row) {
  const auto& goodput = row.filler->server->goodput_per_s;
  return goodput ? fmt::format("{:.3f}", *goodput) : "-";
}

template <int kPercent>
std::string tbt_cell(const ServerRow& row) {
  const auto value = row.filler->server->tbt.percentile(kPercent);
  return value ? fmt::format("{:.3f}", to_seconds(value->value) * 1e3) : "-";
}

constexpr Distribution kTtft = &ServerRow::ttft;
constexpr Distribution kTpot = &ServerRow::tpot;

// OUTPUTS.md defines them.
constexpr std::array kServerColumns{
    ServerColumn{"policy", Columns::kFew, [](const ServerRow& row) { return row.label; },
                 Align::kLeft},
    ServerColumn{"server", Columns::kFew, [](const ServerRow& row) { return row.filler->name; },
                 Align::kLeft},
    ServerColumn{"TTFT mean", Columns::kAll, wait_cell<kTtft, &LatencySummary::mean>},
    ServerColumn{"TTFT p50 ms", Columns::kFew, wait_cell<kTtft, &LatencySummary::p50>},
    ServerColumn{"p90", Columns::kAll, wait_cell<kTtft, &LatencySummary::p90>},
    ServerColumn{"p95", Columns::kAll, wait_cell<kTtft, &LatencySummary::p95>},
    ServerColumn{"p99", Columns::kFew, wait_cell<kTtft, &LatencySummary::p99>},
    ServerColumn{"TPOT mean", Columns::kAll, wait_cell<kTpot, &LatencySummary::mean>},
    ServerColumn{"TPOT p50 ms", Columns::kFew, wait_cell<kTpot, &LatencySummary::p50>},
    ServerColumn{"p90", Columns::kAll, wait_cell<kTpot, &LatencySummary::p90>},
    ServerColumn{"p95", Columns::kAll, wait_cell<kTpot, &LatencySummary::p95>},
    ServerColumn{"p99", Columns::kFew, wait_cell<kTpot, &LatencySummary::p99>},
    ServerColumn{"TBT p50 ms", Columns::kAll, tbt_cell<50>},
    ServerColumn{"p95", Columns::kAll, tbt_cell<95>},
    ServerColumn{"p99", Columns::kAll, tbt_cell<99>},
    ServerColumn{"max", Columns::kAll, tbt_cell<100>},
    ServerColumn{"goodput/s", Columns::kFew, goodput_cell},
    ServerColumn{"tokens/s", Columns::kFew,
                 [](const ServerRow& row) {
                   return fmt::format("{:.1f}", row.filler->server->output_tokens_per_s);
                 }},
    ServerColumn{"KV %", Columns::kFew,
                 [](const ServerRow& row) {
                   return fmt::format("{:.1f}", 100 * row.filler->server->mean_kv_fraction);
                 }},
    ServerColumn{"preempted", Columns::kFew,
                 [](const ServerRow& row) {
                   return std::to_string(row.filler->server->preemptions);
                 }},
};

std::vector<ServerRow> server_rows_of(const RunReport& report) {
  std::vector<ServerRow> rows;
  for (const PolicyResult& policy : report.policies) {
    for (const FillerResult& filler : policy.fillers) {
      if (!filler.server) continue;
      rows.push_back({&policy, &filler, policy_label(policy, report.policies),
                      filler.server->ttft.summary(), filler.server->tpot.summary()});
    }
  }
  return rows;
}

}  // namespace

std::string server_table(const RunReport& report, Columns columns) {
  const std::vector<ServerRow> rows = server_rows_of(report);
  if (rows.empty()) return {};
  std::vector<const ServerColumn*> chosen;
  for (const ServerColumn& column : kServerColumns) {
    if (columns == Columns::kAll || column.shown == Columns::kFew) chosen.push_back(&column);
  }
  return rows_text(chosen, rows);
}

}  // namespace bubblesim::observe
