#include "sim/app/calibrate_text.hpp"

#include <fmt/format.h>

#include <optional>

#include "sim/base/json.hpp"

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

std::string row(const CalibratedConstant& constant) {
  const bool measured = constant.kept.empty();
  std::string text = fmt::format(
      "{:<44} {:>12} {:>12} {:>12} {:>6}", constant.key,
      value_text(constant.unit, constant.base),
      measured ? value_text(constant.unit, constant.value) : "-", spread_text(constant),
      constant.spread.count);
  if (!measured) text += "  kept: " + constant.kept;
  return text + "\n";
}

std::string errors_text(const char* what, const measure::FitErrors& errors) {
  return fmt::format("{:<34} {:>6} {:>8.2f}% {:>8.2f}% {:>8.2f}% {:>8.2f}%\n", what, errors.count,
                     100 * errors.mean, 100 * errors.p50, 100 * errors.p90, 100 * errors.worst);
}

std::string contention_text(const measure::ContentionFit& fit) {
  return fmt::format("\n{:<34} {:>6} {:>9} {:>9} {:>9} {:>9}\n", "slowdowns, |error|", "cells",
                     "mean", "p50", "p90", "worst") +
         errors_text("fitted", fit.fitted) + errors_text("held out, never fitted", fit.held_out) +
         errors_text("held out, by the base's constants", fit.base) +
         fmt::format("condition of the fit: {:.3g}\n", fit.condition);
}

std::string shares_text(const std::vector<measure::SmShare>& shares) {
  std::string text = fmt::format("\n{:<16} {:>6} {:>12} {:>6}\n", "MPS percentage", "SMs",
                                 "kernel", "n");
  for (const measure::SmShare& share : shares) {
    text += fmt::format("{:<16} {:>6} {:>12} {:>6}\n", share.percentage, share.sms,
                        value_text(ConstantUnit::kNanoseconds, share.length_ns), share.count);
  }
  return text;
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
  std::string text = fmt::format("{:<44} {:>12} {:>12} {:>12} {:>6}\n", "constant", "base",
                                 "measured", "spread", "n");
  for (const CalibratedConstant& constant : calibration.constants) text += row(constant);
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
