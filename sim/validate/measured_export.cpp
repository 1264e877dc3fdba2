// Cells, summaries and orders as CSV and JSON.
#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/validate/measured_text.hpp"

namespace bubblesim::validate {
namespace {

std::string_view metric_of(const MeasuredCell& cell) {
  return cell.metric ? metric_name(*cell.metric) : std::string_view{};
}

Json cell_json(const MeasuredCell& cell) {
  Json out = {{"role", role_name(cell.role)},
              {"config", cell.config},
              {"policy", cell.policy},
              {"filler", cell.filler},
              {"metric", metric_of(cell)},
              {"outcome", outcome_name(cell.outcome)}};
  if (!cell.note.empty()) out["note"] = cell.note;
  if (cell.outcome != Outcome::kPredicted) return out;
  out["unit"] = metric_unit(*cell.metric);
  out["measured"] = cell.measured;
  out["measured_low"] = cell.measured_low;
  out["measured_high"] = cell.measured_high;
  out["repetitions"] = cell.repetitions;
  out["simulated"] = cell.simulated;
  out["error"] = cell.error();
  out["error_unit"] = error_unit(*cell.metric);
  return out;
}

Json summary_json(const MeasuredSummary& it) {
  Json out = {{"role", role_name(it.role)},
              {"metric", metric_name(it.metric)},
              {"policy", it.policy},
              {"cells", it.cells},
              {"error_unit", error_unit(it.metric)},
              {"mean_absolute_error", it.mean_absolute},
              {"mean_error", it.mean},
              {"p50_absolute_error", it.p50},
              {"p90_absolute_error", it.p90},
              {"worst_error", it.worst},
              {"worst_cell", it.worst_cell},
              {"aim", nullptr}};
  if (it.aim) {
    out["aim"] = {{"bound", it.aim->bound},
                  {"met", it.met()},
                  {"judged", it.role == Role::kJudge && !it.fake},
                  {"source", it.aim->source}};
  }
  return out;
}

Json order_json(const MeasuredOrder& it) {
  return {{"config", it.config},     {"filler", it.filler}, {"compared", it.compared},
          {"wrong", it.wrong},       {"ties", it.ties},     {"kendall", it.kendall()},
          {"measured", it.measured}, {"simulated", it.simulated}};
}

}  // namespace

std::string measured_csv(const std::vector<MeasuredCell>& cells) {
  std::string out =
      "role,config,policy,filler,metric,unit,outcome,measured,measured_low,measured_high,"
      "repetitions,simulated,error,error_unit,note\n";
  for (const MeasuredCell& cell : cells) {
    out += role_name(cell.role);
    for (const std::string* text : {&cell.config, &cell.policy, &cell.filler}) {
      out += ',';
      append_csv_cell(out, *text);
    }
    out += fmt::format(",{},{},{},", metric_of(cell),
                       cell.metric ? metric_unit(*cell.metric) : std::string_view{},
                       outcome_name(cell.outcome));
    if (cell.outcome == Outcome::kPredicted) {
      out += fmt::format("{},{},{},{},{},{},{},", cell.measured, cell.measured_low,
                         cell.measured_high, cell.repetitions, cell.simulated, cell.error(),
                         error_unit(*cell.metric));
    } else {
      out += ",,,,,,,";
    }
    append_csv_cell(out, cell.note);
    out += '\n';
  }
  return out;
}

std::string measured_json(const std::vector<MeasuredCell>& cells,
                          const std::vector<MeasuredSummary>& summaries,
                          const std::vector<MeasuredOrder>& orders) {
  Json out = {{"cells", Json::array()}, {"summary", Json::array()}, {"order", Json::array()}};
  for (const MeasuredCell& cell : cells) out["cells"].push_back(cell_json(cell));
  for (const MeasuredSummary& it : summaries) out["summary"].push_back(summary_json(it));
  for (const MeasuredOrder& it : orders) out["order"].push_back(order_json(it));
  // Names come from users' files: bytes that are not UTF-8 are replaced, never an exception.
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bubblesim::validate
