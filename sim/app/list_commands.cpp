// bubblesim policies, bubblesim devices: what there is, from the declarations that check configs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/app.hpp"
#include "sim/app/policy_libraries.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

struct ListArguments {
  std::string name;
  std::vector<std::string> policy_libraries;
  bool json = false;
};

std::string allowed(const policy::ParameterSpec& parameter) {
  if (!parameter.choices.empty()) {
    std::string text;
    for (const std::string& choice : parameter.choices) {
      text += (text.empty() ? "" : " | ") + choice;
    }
    return text;
  }
  if (std::holds_alternative<bool>(parameter.fallback)) return "true | false";
  if (std::holds_alternative<std::string>(parameter.fallback)) return "any text";
  return policy::value_text(parameter.minimum) + " .. " + policy::value_text(parameter.maximum);
}

/// Whether `bubblesim advise` varies it.
bool is_searched(const policy::PolicySpec& spec, const std::string& parameter) {
  return std::ranges::find(spec.not_searched, parameter) == spec.not_searched.end();
}

/// The library that the policy is from; empty: it comes with bubblesim.
std::string file_of(const policy::PolicySpec& spec, const AppContext& context) {
  const auto file = context.policy_files.find(spec.name);
  return file == context.policy_files.end() ? "" : file->second;
}

void print_policy(const policy::PolicySpec& spec, const std::string& file) {
  fmt::print("{}{}: {}\n    source: {}\n", spec.name, spec.oracle ? " (oracle)" : "", spec.summary,
             spec.source);
  fmt::print("    demands: {}\n", policy::demands_text(spec));
  if (!spec.reconstruction.empty()) fmt::print("    reconstructed: {}\n", spec.reconstruction);
  if (!file.empty()) fmt::print("    file: {}\n", file);
  for (const policy::ParameterSpec& parameter : spec.parameters) {
    fmt::print("    {:<26} {:>10} {:<8} {}\n      {}\n      source: {}\n", parameter.name,
               policy::value_text(parameter.fallback), parameter.unit, allowed(parameter),
               parameter.help, parameter.source);
  }
}

Json demands_json(const policy::PolicySpec& spec) {
  Json demands = Json::array();
  for (const policy::SystemDemand& demand : spec.demands) {
    Json entry{{"feature", std::string(policy::feature_word(demand.feature))}};
    if (!demand.parameter.empty()) {
      entry["parameter"] = demand.parameter;
      entry["values"] = demand.values;
    }
    demands.push_back(std::move(entry));
  }
  return demands;
}

Json policy_json(const policy::PolicySpec& spec, const std::string& file) {
  Json parameters = Json::array();
  for (const policy::ParameterSpec& parameter : spec.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"default", policy::value_text(parameter.fallback)},
                          {"unit", parameter.unit},
                          {"allowed", allowed(parameter)},
                          {"searched", is_searched(spec, parameter.name)},
                          {"help", parameter.help},
                          {"source", parameter.source}});
  }
  return {{"name", spec.name},
          {"summary", spec.summary},
          {"source", spec.source},
          {"oracle", spec.oracle},
          {"reconstruction", spec.reconstruction},
          {"demands", demands_json(spec)},
          {"file", file.empty() ? Json() : Json(file)},
          {"parameters", std::move(parameters)}};
}

ExitCode list_policies(const ListArguments& arguments, AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(load_policy_libraries(arguments.policy_libraries, context));
  std::vector<const policy::PolicySpec*> specs;
  if (arguments.name.empty()) {
    for (const policy::PolicySpec& spec : context.policies.all()) specs.push_back(&spec);
  } else {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto found, context.policies.find(arguments.name));
    specs.push_back(found);
  }
  if (!arguments.json) {
    for (const policy::PolicySpec* spec : specs) {
      print_policy(*spec, file_of(*spec, context));
    }
    return kExitOk;
  }
  Json all = Json::array();
  for (const policy::PolicySpec* spec : specs) {
    all.push_back(policy_json(*spec, file_of(*spec, context)));
  }
  std::fputs((indented_text(all, 1) + "\n").c_str(), stdout);
  return kExitOk;
}

Json device_json(const hardware::DeviceFile& device) {
  const hardware::GpuSpec& spec = device.spec;
  return {{"id", device.id},
          {"name", spec.name},
          {"recorded_names", device.recorded_names},
          {"compute_capability", fmt::format("{}.{}", spec.compute_major, spec.compute_minor)},
          {"sm_count", spec.sm_count},
          {"memory_bytes", spec.memory.value},
          {"dram_bandwidth_bytes_per_s", spec.dram_bandwidth.value},
          {"launch_latency_ns", to_ns(spec.launch_latency)},
          {"stream_gap_ns", to_ns(spec.stream_gap)},
          {"sync_latency_ns", to_ns(spec.sync_latency)},
          {"completion_notice_ns", to_ns(spec.completion_notice)},
          {"time_slice_ns", to_ns(spec.time_slice)},
          {"context_switch_ns", to_ns(spec.context_switch)}};
}

std::vector<std::string> device_row(const hardware::DeviceFile& device) {
  const hardware::GpuSpec& spec = device.spec;
  return {device.id,
          spec.name,
          fmt::format("{}.{}", spec.compute_major, spec.compute_minor),
          fmt::to_string(spec.sm_count),
          format_bytes(spec.memory),
          format_rate(spec.dram_bandwidth),
          format_duration(spec.time_slice),
          format_duration(spec.context_switch)};
}

ExitCode list_devices(const ListArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices,
                             hardware::read_device_folder(context.device_folder()));
  if (arguments.json) {
    Json all = Json::array();
    for (const hardware::DeviceFile& device : devices) all.push_back(device_json(device));
    std::fputs((indented_text(all, 1) + "\n").c_str(), stdout);
    return kExitOk;
  }
  TextTable table({"device", "name", "cc", "SMs", "memory", "bandwidth", "slice", "switch"},
                  {Align::kLeft, Align::kLeft}, "");
  for (const hardware::DeviceFile& device : devices) table.row(device_row(device));
  fmt::print("{}Every constant with unit and source: {}/*.json\n", table.text(),
             context.device_folder());
  return kExitOk;
}

}  // namespace

void add_list_commands(CLI::App& parser, AppContext& context) {
  auto policy_arguments = std::make_shared<ListArguments>();
  CLI::App* policies = parser.add_subcommand(
      "policies", "Lists policies with every parameter, unit, default, range and source.\n\n"
                  "Example:\n  bubblesim policies tgs");
  policies->add_option("NAME", policy_arguments->name, "Only this one");
  policies->add_flag("--json", policy_arguments->json, "Write JSON");
  add_policy_library_option(*policies, policy_arguments->policy_libraries);
  policies->callback([policy_arguments, &context] {
    context.exit_code = reported(list_policies(*policy_arguments, context));
  });
  auto device_arguments = std::make_shared<ListArguments>();
  CLI::App* devices = parser.add_subcommand(
      "devices", "Lists the devices that can be simulated.\n\n"
                 "Example:\n  bubblesim devices --json");
  devices->add_flag("--json", device_arguments->json, "Write JSON");
  devices->callback([device_arguments, &context] {
    context.exit_code = reported(list_devices(*device_arguments, context));
  });
}

}  // namespace bubblesim::app
