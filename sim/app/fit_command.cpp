// bubblesim fit: constants of the simulator from measurements, so that anyone can repeat how they
// were found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "sim/app/fit_commands.hpp"
#include "sim/base/json.hpp"
#include "sim/fit/fit_kernels.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"

namespace bubblesim::app {
namespace {

struct FitArguments {
  std::string data;
  std::string device = "a100-80gb";
  std::string output;
  bool json = false;
};

// "h100" for "h100", "a100" for "a100-80gb".
std::string family_of(const std::string& device) {
  for (const std::string& family : fit::measured_families()) {
    if (device == family || device.starts_with(family + "-")) return family;
  }
  return device;
}

void print_fit(const fit::KernelFit& fit, const fit::KernelMeasurements& measured) {
  fmt::print("{} rows of {} tables\n\n", measured.rows.size(), measured.sources.size());
  fmt::print("{}\n", constants_text(fit.constants));
  TextTable table({"kernels", "rows", "n", "|error|", ">= 20 us", "bias", "worst",
                   "the worst one"},
                  {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight, Align::kLeft},
                  "");
  const auto percent = [](double share) { return fmt::format("{:.1f}%", 100 * share); };
  for (const fit::KernelErrors& e : fit.errors) {
    table.row({e.name, std::string(validate::role_name(e.role)), fmt::to_string(e.all.rows),
               percent(e.all.mean_absolute), percent(e.long_rows.mean_absolute),
               percent(e.all.bias), percent(e.all.worst), e.all.worst_label});
  }
  fmt::print("{}", table.text());
}

Json fit_json(const fit::KernelFit& fit, const fit::KernelMeasurements& measured) {
  Json constants = Json::array();
  for (const fit::FittedConstant& constant : fit.constants) {
    constants.push_back({{"path", constant.path},
                         {"start", constant.start},
                         {"value", constant.value},
                         {"source", constant.source}});
  }
  Json errors = Json::array();
  for (const fit::KernelErrors& e : fit.errors) {
    errors.push_back({{"kernels", e.name},
                      {"role", validate::role_name(e.role)},
                      {"rows", e.all.rows},
                      {"rows_of_20us_or_more", e.long_rows.rows},
                      {"mean_absolute_error", e.all.mean_absolute},
                      {"mean_absolute_error_of_20us_or_more", e.long_rows.mean_absolute},
                      {"bias", e.all.bias},
                      {"worst", e.all.worst},
                      {"worst_row", e.all.worst_label}});
  }
  return {{"sources", measured.sources},
          {"constants", std::move(constants)},
          {"errors", std::move(errors)}};
}

CheckedResult<fit::MeasuredDevices> devices_of(const fit::KernelMeasurements& measured,
                                               const std::string& folder) {
  fit::MeasuredDevices devices;
  for (const fit::KernelMeasurement& row : measured.rows) {
    if (devices.contains(row.device)) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(auto spec, hardware::find_gpu_spec(row.device, folder));
    devices.emplace(row.device, std::move(spec));
  }
  return devices;
}

ExitCode write_kernel_fit(const FitArguments& arguments, model::EfficiencyFile file,
                          const fit::KernelFit& fit) {
  file.efficiency = fit.efficiency;
  for (const fit::FittedConstant& constant : fit.constants) {
    file.sources[constant.path] = constant.source;
  }
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.output, model::efficiency_text(file)));
  if (!arguments.json) fmt::print("\nwritten: {}\n", arguments.output);
  return kExitOk;
}

ExitCode fit_kernel_times(const FitArguments& arguments, const AppContext& context) {
  const std::string folder = context.config_folder + "/efficiency";
  BUBBLESIM_ASSIGN_OR_RETURN(const auto known, model::find_efficiency(arguments.device, folder));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto start,
                             model::read_efficiency_file(folder + "/" + known.id + ".json"));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto measured,
                             fit::read_measured_kernels(arguments.data, family_of(known.id)));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices, devices_of(measured, context.device_folder()));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto fit, fit::fit_kernels(measured, devices, start.efficiency));
  if (arguments.json) {
    std::fputs((indented_text(fit_json(fit, measured), 1) + "\n").c_str(), stdout);
  } else {
    print_fit(fit, measured);
  }
  for (const auto& [name, entry] : measured.counters) {
    std::fprintf(stderr, "%s (%s): %llu: %s\n", name.c_str(),
                 std::string(severity_name(entry.severity)).c_str(),
                 static_cast<unsigned long long>(entry.count), entry.help.c_str());
  }
  return arguments.output.empty() ? kExitOk : write_kernel_fit(arguments, start, fit);
}

}  // namespace

TextTable constants_table() {
  return {{"constant", "unit", "start", "fitted"},
          {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight},
          ""};
}

std::string constants_text(const std::vector<fit::FittedConstant>& constants) {
  TextTable table = constants_table();
  for (const fit::FittedConstant& constant : constants) {
    table.row({constant.path, constant.unit, fmt::format("{:.4g}", constant.start),
               fmt::format("{:.4g}", constant.value)});
  }
  return table.text();
}

ExitCode write_fit(const std::string& output, const std::string& path,
                   const std::vector<fit::FittedConstant>& constants) {
  if (output.empty()) return kExitOk;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto text, fit::fitted_text(path, constants));
  BUBBLESIM_RETURN_IF_ERROR(write_output(output, text));
  fmt::print("\nwritten: {}\n", output);
  return kExitOk;
}

void add_fit_command(CLI::App& parser, AppContext& context) {
  CLI::App* fit = parser.add_subcommand(
      "fit",
      "Fits constants of the simulator to measurements; prints them with their errors on the "
      "rows that they were fitted to and on rows kept for judging.\n\n"
      "Examples:\n  bubblesim fit kernels --data ../shared/data --device a100-80gb\n"
      "  bubblesim fit kernels --data ../shared/data --device h100 -o h100.json\n"
      "  bubblesim fit network --data ../shared/data -o cluster.json");
  fit->require_subcommand(1);
  auto arguments = std::make_shared<FitArguments>();
  CLI::App* kernels = fit->add_subcommand(
      "kernels", "How long kernels take: the constants of configs/efficiency/*.json, from "
                 "published tables and profiler traces (sim/fit/README.md lists them).");
  kernels->add_option("--data", arguments->data, "Folder of the public data sets")->required();
  kernels->add_option("--device", arguments->device,
                      "A file of configs/efficiency: gives peaks, and what is not fitted")
      ->capture_default_str();
  kernels->add_option("-o,--output", arguments->output,
                      "Write the efficiency file here (default: print only)");
  kernels->add_flag("--json", arguments->json, "Print JSON");
  context.outputs.writes(*kernels, "--output");
  kernels->callback([arguments, &context] {
    context.exit_code = reported(fit_kernel_times(*arguments, context));
  });
  add_fit_network(*fit, context);
  add_fit_sharing(*fit, context);
  add_fit_training(*fit, context);
}

}  // namespace bubblesim::app
