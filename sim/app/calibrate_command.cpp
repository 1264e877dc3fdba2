// bubblesim calibrate: a device's constants, measured, as a device file.
#include "sim/app/calibrate_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/calibrate_text.hpp"
#include "sim/app/gpu_place.hpp"
#include "sim/base/data_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/calibrate/calibrate.hpp"

namespace bubblesim::app {
namespace {

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

CheckedResult<hardware::DeviceFile> named_device(const std::string& name,
                                                 const std::string& folder) {
  if (is_file_path(name)) return hardware::read_device_file(name);
  BUBBLESIM_ASSIGN_OR_RETURN(const Devices devices, hardware::read_device_folder(folder));
  std::vector<std::string> ids;
  for (const hardware::DeviceFile& device : devices) {
    if (device.id == name) return device;
    ids.push_back(device.id);
  }
  if (const auto match = hardware::match_recorded_name(name, devices)) return **match;
  return fail(folder, {}, unknown_name_message("device", name, ids));
}

/// Of the same compute capability no file is chosen unasked: SMs and bandwidths would be wrong.
CheckedResult<hardware::DeviceFile> base_device(const CalibrateArguments& arguments,
                                                const AppContext& context) {
  const std::string folder = context.device_folder();
  if (!arguments.device.empty()) return named_device(arguments.device, folder);
  if (arguments.place.fake) return named_device("h100", folder);
  const std::string name = driver_name(arguments);
  if (name.empty()) {
    return fail("the GPU's name is not known (no driver); --device says what it is");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const Devices devices, hardware::read_device_folder(folder));
  if (const auto match = hardware::match_recorded_name(name, devices)) return **match;
  std::string message =
      "no device file is of a \"" + name + "\"; --device names one to start from:";
  for (const hardware::DeviceFile& device : devices) {
    message += fmt::format(" {} ({}.{}, {} SMs)", device.id, device.spec.compute_major,
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
      return data_file_id(output) != other.id &&
             std::ranges::find(other.recorded_names, recorded) != other.recorded_names.end();
    });
  });
  return names;
}

Result<void> write_outputs(const CalibrateArguments& arguments,
                           const hardware::DeviceFile& base,
                           const measure::Calibration& calibration,
                           const measure::CalibrationOrigin& origin) {
  if (!arguments.residuals.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(
        write_output(arguments.residuals, measure::residuals_csv(calibration)));
  }
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
    BUBBLESIM_ASSIGN_OR_RETURN(const auto other,
                               named_device(arguments.fake_device, context.device_folder()));
    fake = other.spec;
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
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = parser.add_subcommand("calibrate", description());
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
  context.outputs.writes(*command, "--output");
  context.outputs.writes(*command, "--residuals");
  command->callback([arguments, &context] {
    context.exit_code = reported(calibrate_device(*arguments, context));
  });
}

}  // namespace bubblesim::app
