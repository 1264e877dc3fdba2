#include "sim/validate/sharing_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::validate {
namespace {

std::string pair_line(const JudgedPair& it) {
  std::string line = fmt::format("{:<5} {:<13}", role_name(it.row.role), it.row.system);
  if (it.outcome != Outcome::kPredicted) {
    return fmt::format("{} {}: {}\n", line, outcome_name(it.outcome), it.note);
  }
  for (const SharingMetric metric : kAllSharingMetrics) {
    const auto i = static_cast<std::size_t>(metric);
    const bool share = metric == SharingMetric::kInferenceThroughput ||
                       metric == SharingMetric::kTrainingThroughput;
    line += share ? fmt::format(" | {:>4.2f} {:>5.3f} {:>+6.1f}%", it.row.measured[i],
                                it.simulated[i], 100 * it.error(metric))
                  : fmt::format(" | {:>6.5g} {:>6.5g} {:>+6.1f}%", it.row.measured[i],
                                it.simulated[i], 100 * it.error(metric));
  }
  return line + "\n";
}

Json pair_json(const JudgedPair& it) {
  Json out = {{"role", role_name(it.row.role)},
              {"inference", it.row.inference},
              {"training", it.row.training},
              {"system", it.row.system},
              {"outcome", outcome_name(it.outcome)}};
  if (!it.note.empty()) out["note"] = it.note;
  if (it.outcome != Outcome::kPredicted) return out;
  for (const SharingMetric metric : kAllSharingMetrics) {
    const auto i = static_cast<std::size_t>(metric);
    out[std::string(metric_name(metric))] = {{"measured", it.row.measured[i]},
                                             {"simulated", it.simulated[i]},
                                             {"error", it.error(metric)}};
  }
  return out;
}

}  // namespace

std::string sharing_rows_text(const std::vector<JudgedPair>& rows) {
  std::string out;
  std::string pair;
  for (const JudgedPair& it : rows) {
    const std::string name = it.row.inference + " beside " + it.row.training;
    if (name != pair) {
      out += fmt::format("{}{}, alone {:.5g} ms (each: measured, simulated, error)\n",
                         out.empty() ? "" : "\n", name, it.row.solo_ms);
      out += fmt::format("{:<5} {:<13} | {:<18} | {:<18} | {:<21} | {:<21} | {:<21} | {:<21}\n",
                         "role", "system", "inference thr.", "training thr.", "avg ms", "p90 ms",
                         "p95 ms", "p99 ms");
      pair = name;
    }
    out += pair_line(it);
  }
  return out;
}

std::string sharing_summary_text(const std::vector<SharingSummary>& summaries) {
  std::string out = fmt::format("{:<13} {:<25} {:<5} {:>4} {:>8} {:>7} {:>7}  {}\n", "system",
                                "metric", "role", "rows", "|error|", "bias", "worst", "aim");
  for (const SharingSummary& it : summaries) {
    out += fmt::format("{:<13} {:<25} {:<5} {:>4} {:>7.1f}% {:>+6.1f}% {:>+6.1f}%", it.system,
                       metric_name(it.metric), it.role, it.rows, 100 * it.mean_absolute,
                       100 * it.bias, 100 * it.worst);
    if (it.aim > 0) {
      out += fmt::format("  mean <= {:.0f} %: {}; {:.0f} % of rows within", 100 * it.aim,
                         it.mean_absolute <= it.aim ? "met" : "missed", 100 * it.within_aim);
    }
    out += "\n";
  }
  return out;
}

std::string sharing_order_text(const std::vector<SharingOrder>& orders) {
  std::string out = "order of the systems\n";
  for (const SharingOrder& it : orders) {
    out += fmt::format("{} beside {}, {}: {} ({} of {} comparisons)\n", it.inference, it.training,
                       metric_name(it.metric), it.right == it.compared ? "right" : "wrong",
                       it.right, it.compared);
    if (it.right == it.compared) continue;
    out += fmt::format("  measured:  {}\n  simulated: {}\n", it.measured, it.simulated);
  }
  return out;
}

std::string sharing_csv(const std::vector<JudgedPair>& rows) {
  std::string out =
      "role,inference,training,system,outcome,metric,measured,simulated,error,note\n";
  for (const JudgedPair& it : rows) {
    const std::string head =
        fmt::format("{},{},{},{},{}", role_name(it.row.role), csv_quoted(it.row.inference),
                    csv_quoted(it.row.training), it.row.system, outcome_name(it.outcome));
    if (it.outcome != Outcome::kPredicted) {
      out += fmt::format("{},,,,,{}\n", head, csv_quoted(it.note));
      continue;
    }
    for (const SharingMetric metric : kAllSharingMetrics) {
      const auto i = static_cast<std::size_t>(metric);
      out += fmt::format("{},{},{},{},{},{}\n", head, metric_name(metric), it.row.measured[i],
                         it.simulated[i], it.error(metric), csv_quoted(it.note));
    }
  }
  return out;
}

std::string sharing_json(const std::vector<JudgedPair>& rows,
                         const std::vector<SharingSummary>& summaries,
                         const std::vector<SharingOrder>& orders) {
  Json out = {{"rows", Json::array()}, {"summary", Json::array()}, {"order", Json::array()}};
  for (const JudgedPair& it : rows) out["rows"].push_back(pair_json(it));
  for (const SharingSummary& it : summaries) {
    Json summary = {{"system", it.system},           {"metric", metric_name(it.metric)},
                    {"role", it.role},               {"rows", it.rows},
                    {"mean_absolute_error", it.mean_absolute},
                    {"bias", it.bias},               {"worst", it.worst}};
    if (it.aim > 0) {
      summary["aim"] = {{"bound", it.aim},
                        {"met", it.mean_absolute <= it.aim},
                        {"rows_within", it.within_aim}};
    }
    out["summary"].push_back(std::move(summary));
  }
  for (const SharingOrder& it : orders) {
    out["order"].push_back({{"inference", it.inference},
                            {"training", it.training},
                            {"metric", metric_name(it.metric)},
                            {"right", it.right == it.compared},
                            {"compared", it.compared},
                            {"concordant", it.right},
                            {"measured", it.measured},
                            {"simulated", it.simulated}});
  }
  return out.dump(1) + "\n";
}

}  // namespace bubblesim::validate
