#include "sim/measure/calibrate/calibrated_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <string_view>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::measure {
namespace {

Result<Json> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path, "", "cannot be read");
  Json out = Json::parse(file, nullptr, false);
  if (out.is_discarded() || !out.is_object()) return fail(path, "", "expected a JSON object");
  return out;
}

/// `path`: "part/dark_clock_gain".
void put_constant(Json& root, std::string_view path, const Json& value,
                  const std::string& source) {
  const std::size_t slash = path.find('/');
  if (slash != std::string_view::npos) {
    return put_constant(root[std::string(path.substr(0, slash))], path.substr(slash + 1), value,
                        source);
  }
  Json& constant = root[std::string(path)];
  constant["value"] = value;
  constant["source"] = source;
}

/// To five digits: no constant is known better.
double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

Json json_value(const CalibratedConstant& constant) {
  switch (constant.unit) {
    case ConstantUnit::kSms: return static_cast<std::uint64_t>(constant.value);
    case ConstantUnit::kPeakShare:
    case ConstantUnit::kShare: return Json::parse(value_text(constant.unit, constant.value));
    case ConstantUnit::kNanoseconds:
    case ConstantUnit::kBytesPerSecond:
    case ConstantUnit::kOrder: break;
  }
  return value_text(constant.unit, constant.value);
}

const char* class_name(program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return "compute";
    case program::KernelClass::kMemory: return "memory";
    case program::KernelClass::kUnknown: break;
  }
  return "unknown";
}

/// A base file that has no `part` has no units for it either.
void put_part_units(Json& root) {
  if (!root.contains("part")) return;
  root["part"]["dram_saturating_sms"]["unit"] = "share";
  root["part"]["dark_clock_gain"]["unit"] = "ratio";
}

/// The base's cost of a switch without blocks is no more where all of one was measured to be less.
void drop_dear_empty_switch(Json& root, const hardware::GpuSpec& spec) {
  if (spec.context_switch_empty > spec.context_switch) root.erase("context_switch_empty");
}

std::string occupant_text(const Occupant& occupant) {
  return fmt::format("{},{}", class_name(occupant.kernel_class), occupant.blocks);
}

}  // namespace

std::string value_text(ConstantUnit unit, double value) {
  switch (unit) {
    case ConstantUnit::kNanoseconds: {
      const Duration span{std::llround(std::abs(value))};
      return (value < -0.5 ? "-" : "") + format_duration(span);
    }
    case ConstantUnit::kBytesPerSecond: return format_rate(BytesPerSecond{rounded(value)});
    case ConstantUnit::kSms: return fmt::format("{:.0f}", value);
    case ConstantUnit::kOrder: return value > 0.5 ? "arrival" : "even";
    case ConstantUnit::kPeakShare:
    case ConstantUnit::kShare: break;
  }
  return fmt::format("{:.4g}", std::max(0.0, value));
}

std::string source_of(const CalibratedConstant& constant, const CalibrationOrigin& origin) {
  std::string text = fmt::format("measured: bubblesim calibrate{}, {}, {}",
                                 origin.fake ? " --fake" : "", origin.date, origin.device);
  if (!origin.driver.empty()) text += ", driver " + origin.driver;
  const Spread& spread = constant.spread;
  if (constant.unit == ConstantUnit::kShare) {
    return text + fmt::format(", fitted to n={} cells of a grid of kernels, standard error {:.2g}",
                              spread.count, spread.high - spread.middle);
  }
  text += fmt::format(", n={}", spread.count);
  if (constant.unit == ConstantUnit::kSms) return text + " MPS percentages";
  if (constant.unit == ConstantUnit::kOrder) return text + " kernels beside another client's";
  return text + fmt::format(", quartiles {} to {}", value_text(constant.unit, spread.low),
                            value_text(constant.unit, spread.high));
}

Result<std::string> calibrated_device_text(
    const std::string& base_path, const Calibration& calibration, const CalibrationOrigin& origin,
    const std::optional<std::vector<std::string>>& recorded_names) {
  BUBBLESIM_ASSIGN_OR_RETURN(Json root, load_config(base_path));
  if (recorded_names) {
    put_constant(
        root, "recorded_names", *recorded_names,
        "bubblesim calibrate: names of the device that no other file of the folder has");
  }
  if (!origin.device.empty()) root["name"]["value"] = origin.device;
  for (const CalibratedConstant& constant : calibration.constants) {
    if (!constant.kept.empty()) continue;
    put_constant(root, constant.key, json_value(constant), source_of(constant, origin));
  }
  put_part_units(root);
  drop_dear_empty_switch(root, calibration.spec);
  return indented_text(root, 2) + "\n";
}

std::string residuals_csv(const Calibration& calibration) {
  std::string text =
      "victim_class,victim_blocks,first_class,first_blocks,second_class,second_blocks,"
      "executions,measured_slowdown,low_quartile,high_quartile,fitted_slowdown,error,held_out\n";
  for (std::size_t i = 0; i < calibration.cells.size(); ++i) {
    const ContentionCell& cell = calibration.cells[i];
    const double fitted =
        calibration.contention ? calibration.contention->predicted[i] : 0;
    text += occupant_text(cell.victim);
    for (std::size_t other = 0; other < 2; ++other) {
      text += other < cell.others.size() ? "," + occupant_text(cell.others[other]) : ",,";
    }
    text += fmt::format(",{},{:.5f},{:.5f},{:.5f},{:.5f},{:.5f},{}\n", cell.slowdown.count,
                        cell.slowdown.middle, cell.slowdown.low, cell.slowdown.high, fitted,
                        fitted / cell.slowdown.middle - 1, cell.held_out ? 1 : 0);
  }
  return text;
}

}  // namespace bubblesim::measure
