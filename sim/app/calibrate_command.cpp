// bubblesim calibrate: a device's constants, measured, as a device file.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/gpu_place.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/calibrate/calibrate.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

// ---- What `bubblesim calibrate` prints: a table for people, JSON for programs.

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

std::string calibration_table(const measure::Calibration& calibration) {
  std::string text = constants_text(calibration.constants);
  if (!calibration.sm_shares.empty()) text += shares_text(calibration.sm_shares);
  if (calibration.contention) text += contention_text(*calibration.contention);
  return text;
}

// Times in nanoseconds, rates in bytes a second; `measured` null where the base's value stays.
std::string calibration_json(const measure::Calibration& calibration,
                             const measure::CalibrationOrigin& origin) {
  Json shares = list_json(calibration.sm_shares, [](const measure::SmShare& share) -> Json {
    return {{"percentage", share.percentage},
            {"sms", share.sms},
            {"kernel_ns", share.length_ns},
            {"n", share.count}};
  });
  Json out{{"date", origin.date},
           {"device", origin.device},
           {"driver", origin.driver},
           {"fake", origin.fake},
           {"sm_clock_before_mhz", clock_json(origin.clock_before_mhz)},
           {"sm_clock_after_mhz", clock_json(origin.clock_after_mhz)},
           {"constants", list_json(calibration.constants, constant_json)},
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

struct CalibrateArguments {
  PlaceArguments place;
  std::string output, device, fake_device, only, residuals;
  bool json = false;
};

using Devices = std::vector<hardware::DeviceFile>;

std::string driver_name(const CalibrateArguments& arguments) {
  const auto reader = capture::CardReader::open();
  if (!reader) return {};
  const std::string gpu = arguments.place.gpu.empty() ? "0" : arguments.place.gpu;
  const auto card = (*reader)->read(gpu);
  return card ? card->name : std::string();
}

/// A file of the same compute capability is not chosen by itself: SMs and bandwidths would be
/// wrong.
CheckedResult<hardware::DeviceFile> base_device(const CalibrateArguments& arguments,
                                                const AppContext& context) {
  const std::string folder = context.device_folder();
  if (!arguments.device.empty()) return hardware::find_device_file(arguments.device, folder);
  if (arguments.place.fake) return hardware::find_device_file("h100", folder);
  const std::string name = driver_name(arguments);
  if (name.empty()) {
    return fail("the GPU's name is not known (no driver); --device says what it is");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const Devices devices, hardware::read_device_folder(folder));
  if (const auto match = hardware::match_recorded_name(name, devices)) return **match;
  std::string message =
      "no device file is of a \"" + name + "\"; --device names one to start from:";
  for (const hardware::DeviceFile& device : devices) {
    message += fmt::format(" {} ({}.{}, {} SMs)", device.spec.id, device.spec.compute_major,
                           device.spec.compute_minor, device.spec.sm_count);
  }
  return fail(folder, {}, message);
}

/// A recorded name may be in one file of a folder. Nothing: the base's stay.
std::optional<std::vector<std::string>> recorded_names(const std::string& output,
                                                       const hardware::DeviceFile& base,
                                                       const std::string& name) {
  std::error_code unknown;
  if (std::filesystem::equivalent(output, base.path, unknown)) return std::nullopt;
  std::vector<std::string> names = base.recorded_names;
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names = {name};
  const std::string folder = std::filesystem::path(output).parent_path().string();
  const auto others = hardware::read_device_folder(folder.empty() ? "." : folder);
  if (!others) return names;
  std::erase_if(names, [&](const std::string& recorded) {
    return std::ranges::any_of(*others, [&](const hardware::DeviceFile& other) {
      return data_file_id(output) != other.spec.id &&
             std::ranges::find(other.recorded_names, recorded) != other.recorded_names.end();
    });
  });
  return names;
}

Result<void> write_outputs(const CalibrateArguments& arguments,
                           const hardware::DeviceFile& base,
                           const measure::Calibration& calibration,
                           const measure::CalibrationOrigin& origin) {
  BUBBLESIM_RETURN_IF_ERROR(write_output(
      arguments.residuals, [&] { return measure::residuals_csv(calibration); }));
  if (arguments.output.empty()) return {};
  const auto names = recorded_names(arguments.output, base, origin.device);
  BUBBLESIM_ASSIGN_OR_RETURN(
      const std::string text,
      measure::calibrated_device_text(base.path, calibration, origin, names));
  return write_output(arguments.output, text);
}

void print_calibration(const CalibrateArguments& arguments, const measure::Calibration& calibration,
           const measure::CalibrationOrigin& origin) {
  if (arguments.json) {
    std::fputs(calibration_json(calibration, origin).c_str(), stdout);
    return;
  }
  std::fputs(calibration_table(calibration).c_str(), stdout);
  if (origin.clock_before_mhz && origin.clock_after_mhz) {
    fmt::print("\nSM clock: {:.0f} MHz before, {:.0f} MHz after\n", *origin.clock_before_mhz,
               *origin.clock_after_mhz);
  }
}

measure::CalibrationOrigin origin_of(const observe::Measurement& measured,
                                     const hardware::DeviceFile& base,
                                     const std::string& name) {
  measure::CalibrationOrigin origin;
  origin.date = measured.date.substr(0, 10);
  origin.device = name.empty() ? base.spec.name : name;
  origin.driver = measured.driver;
  origin.fake = measured.place == "fake";
  origin.clock_before_mhz = measured.sm_clock_before_mhz;
  origin.clock_after_mhz = measured.sm_clock_after_mhz;
  return origin;
}

ExitCode calibrate_device(const CalibrateArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto base, base_device(arguments, context));
  hardware::GpuSpec fake = base.spec;
  if (!arguments.fake_device.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        fake, hardware::find_gpu_spec(arguments.fake_device, context.device_folder()));
  }
  ProgressLine progress;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto place,
                             GpuPlace::open(arguments.place, fake, progress.callback()));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto calibration,
      measure::calibrate(base.spec, place->rig(), split_list(arguments.only)));
  progress.clear();
  const observe::Measurement measured = place->measurement();
  const std::string name = arguments.place.fake ? "" : driver_name(arguments);
  const auto origin = origin_of(measured, base, name);
  print_calibration(arguments, calibration, origin);
  std::fflush(stdout);
  BUBBLESIM_RETURN_IF_ERROR(place->check_settings());
  BUBBLESIM_RETURN_IF_ERROR(write_outputs(arguments, base, calibration, origin));
  if (!arguments.output.empty() && !arguments.json) {
    fmt::print("\nwritten: {}\n", arguments.output);
  }
  return calibration.counters.has_error() ? kExitUntrusted : kExitOk;
}

std::string description() {
  std::string text =
      "Measures the constants of a device (configs/devices) with stand-in kernels on a GPU and "
      "writes a device file: latencies, bandwidths, time slices, MPS, and how kernels slow each "
      "other. What cannot be seen, or differs too much, keeps the base's value and is named. "
      "Settings of the GPU are left as they are. Takes 1 to 3 minutes; the GPU should be idle "
      "otherwise.\n\nProbes (--only):\n";
  for (const measure::Probe& probe : measure::probe_list()) {
    text += fmt::format("  {:<12} {}\n", probe.name, probe.what);
  }
  return text +
         "\nExamples:\n"
         "  bubblesim calibrate -o configs/devices/mine.json\n"
         "  bubblesim calibrate --only latencies,slices --json\n"
         "  bubblesim calibrate --device h100 -o mine.json --residuals residuals.csv\n"
         "  bubblesim calibrate --fake --device a100-80gb";
}

}  // namespace

void add_calibrate_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, calibrate_device, "calibrate", description());
  command->add_option("-o,--output", arguments->output,
                      "Write the device file here (default: print only)");
  command->add_option("--device", arguments->device,
                      "Device to start from, a name or a file (default: the one of the GPU's "
                      "name; with --fake: h100): its SMs shape the probes, and what is not "
                      "measured stays");
  command->add_option("--only", arguments->only, "Probes, comma-separated (default: all)");
  command->add_option("--residuals", arguments->residuals,
                      "Write the slowdowns, measured and fitted, to this CSV file");
  command->add_option("--fake-device", arguments->fake_device,
                      "With --fake: what the GPU is really like, a name or a file")
      ->group("");
  add_place_options(*command, arguments->place);
  command->add_flag("--json", arguments->json, "Print JSON in place of the table");
  context.outputs.writes(*command, {"--output", "--residuals"});
}

}  // namespace bubblesim::app
