#include "sim/app/calibrate_text.hpp"

#include <fmt/format.h>

#include <optional>

#include "sim/base/json.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

using measure::CalibratedConstant;
using measure::ConstantUnit;
using measure::value_text;

const char* unit_name(ConstantUnit unit) {
  switch (unit) {
    case ConstantUnit::kNanoseconds: return "ns";
    case ConstantUnit::kBytesPerSecond: return "B/s";
    case ConstantUnit::kSms: return "SMs";
    case ConstantUnit::kOrder: return "order";
    case ConstantUnit::kPeakShare:
    case ConstantUnit::kShare: break;
  }
  return "share";
}

/// Half the width of the middle half; of a fit, the standard error.
std::string spread_text(const CalibratedConstant& constant) {
  const measure::Spread& spread = constant.spread;
  const bool counted = constant.unit == ConstantUnit::kSms || constant.unit == ConstantUnit::kOrder;
  if (spread.count == 0 || counted) return "-";
  return "+-" + value_text(constant.unit, (spread.high - spread.low) / 2);
}

std::string constants_text(const std::vector<CalibratedConstant>& constants) {
  TextTable table({"constant", "base", "measured", "spread", "n", ""},
                  {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kLeft},
                  "");
  for (const CalibratedConstant& constant : constants) {
    const bool measured = constant.kept.empty();
    table.row({constant.key, value_text(constant.unit, constant.base),
               measured ? value_text(constant.unit, constant.value) : "-", spread_text(constant),
               fmt::to_string(constant.spread.count),
               measured ? "" : "kept: " + constant.kept});
  }
  return table.text();
}

std::vector<std::string> errors_row(const char* what, const measure::FitErrors& errors) {
  const auto percent = [](double share) { return fmt::format("{:.2f}%", 100 * share); };
  return {what, fmt::to_string(errors.count), percent(errors.mean), percent(errors.p50),
          percent(errors.p90), percent(errors.worst)};
}

std::string contention_text(const measure::ContentionFit& fit) {
  TextTable table({"slowdowns, |error|", "cells", "mean", "p50", "p90", "worst"}, {Align::kLeft},
                  "");
  table.row(errors_row("fitted", fit.fitted));
  table.row(errors_row("held out, never fitted", fit.held_out));
  table.row(errors_row("held out, by the base's constants", fit.base));
  return "\n" + table.text() + fmt::format("condition of the fit: {:.3g}\n", fit.condition);
}

std::string shares_text(const std::vector<measure::SmShare>& shares) {
  TextTable table({"MPS percentage", "SMs", "kernel", "n"}, {}, "");
  for (const measure::SmShare& share : shares) {
    table.row({fmt::to_string(share.percentage), fmt::to_string(share.sms),
               value_text(ConstantUnit::kNanoseconds, share.length_ns),
               fmt::to_string(share.count)});
  }
  return "\n" + table.text();
}

Json clock_json(const std::optional<double>& mhz) { return mhz ? Json(*mhz) : Json(nullptr); }

Json errors_json(const measure::FitErrors& errors) {
  return {{"cells", errors.count},
          {"mean", errors.mean},
          {"p50", errors.p50},
          {"p90", errors.p90},
          {"worst", errors.worst}};
}

Json constant_json(const CalibratedConstant& constant) {
  const bool measured = constant.kept.empty();
  Json out{{"constant", constant.key},
           {"unit", unit_name(constant.unit)},
           {"base", constant.base},
           {"measured", measured ? Json(constant.value) : Json(nullptr)},
           {"n", constant.spread.count},
           {"low", constant.spread.low},
           {"high", constant.spread.high}};
  if (!measured) out["kept"] = constant.kept;
  return out;
}

}  // namespace

std::string calibration_table(const measure::Calibration& calibration) {
  std::string text = constants_text(calibration.constants);
  if (!calibration.sm_shares.empty()) text += shares_text(calibration.sm_shares);
  if (calibration.contention) text += contention_text(*calibration.contention);
  return text;
}

std::string calibration_json(const measure::Calibration& calibration,
                             const measure::CalibrationOrigin& origin) {
  Json constants = Json::array();
  for (const CalibratedConstant& constant : calibration.constants) {
    constants.push_back(constant_json(constant));
  }
  Json shares = Json::array();
  for (const measure::SmShare& share : calibration.sm_shares) {
    shares.push_back({{"percentage", share.percentage},
                      {"sms", share.sms},
                      {"kernel_ns", share.length_ns},
                      {"n", share.count}});
  }
  Json out{{"date", origin.date},
           {"device", origin.device},
           {"driver", origin.driver},
           {"fake", origin.fake},
           {"sm_clock_before_mhz", clock_json(origin.clock_before_mhz)},
           {"sm_clock_after_mhz", clock_json(origin.clock_after_mhz)},
           {"constants", std::move(constants)},
           {"sm_shares", std::move(shares)}};
  if (calibration.contention) {
    const measure::ContentionFit& fit = *calibration.contention;
    out["contention"] = {{"fitted", errors_json(fit.fitted)},
                         {"held_out", errors_json(fit.held_out)},
                         {"held_out_by_base", errors_json(fit.base)},
                         {"condition", fit.condition}};
  }
  return indented_text(out, 1) + "\n";
}

}  // namespace bubblesim::app
