// bubblesim policies, bubblesim devices: what there is, from the declarations that check configs.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/policy_options.hpp"
#include "sim/app/schema_kinds.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/model/training_work.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

struct ListArguments {
  std::string name;
  bool json = false;
};

std::string allowed(const policy::ParameterSpec& parameter) {
  if (!parameter.choices.empty()) {
    return fmt::format("{}", fmt::join(parameter.choices, " | "));
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

Json demand_json(const policy::SystemDemand& demand) {
  Json entry{{"feature", std::string(policy::feature_word(demand.feature))}};
  if (!demand.parameter.empty()) {
    entry["parameter"] = demand.parameter;
    entry["values"] = demand.values;
  }
  return entry;
}

Json policy_json(const policy::PolicySpec& spec, const std::string& file) {
  Json parameters = list_json(spec.parameters, [&](const policy::ParameterSpec& parameter) -> Json {
    return {{"name", parameter.name},
            {"default", policy::value_text(parameter.fallback)},
            {"unit", parameter.unit},
            {"allowed", allowed(parameter)},
            {"searched", is_searched(spec, parameter.name)},
            {"help", parameter.help},
            {"source", parameter.source}};
  });
  return {{"name", spec.name},
          {"summary", spec.summary},
          {"source", spec.source},
          {"oracle", spec.oracle},
          {"reconstruction", spec.reconstruction},
          {"demands", list_json(spec.demands, demand_json)},
          {"file", file.empty() ? Json() : Json(file)},
          {"parameters", std::move(parameters)}};
}

ExitCode list_policies(const ListArguments& arguments, const AppContext& context) {
  std::vector<const policy::PolicySpec*> specs;
  if (arguments.name.empty()) {
    for (const policy::PolicySpec& spec : context.policies.all()) specs.push_back(&spec);
  } else {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto found, context.policies.find(arguments.name));
    specs.push_back(found);
  }
  if (arguments.json) {
    const auto as_json = [&](const auto* spec) {
      return policy_json(*spec, file_of(*spec, context));
    };
    print(indented_text(list_json(specs, as_json), 1) + "\n");
    return kExitOk;
  }
  for (const policy::PolicySpec* spec : specs) print_policy(*spec, file_of(*spec, context));
  return kExitOk;
}

// bubblesim devices; bubblesim models, plans, clusters: what `bubblesim synth` can put together.

/// A file of a list: its row for people, and the same for programs.
struct ListEntry {
  std::vector<std::string> cells;
  Json json;
};

using Entries = CheckedResult<std::vector<ListEntry>>;

Entries devices(const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, hardware::read_device_folder(configs + "/devices"));
  std::vector<ListEntry> out;
  for (const hardware::DeviceFile& file : files) {
    const hardware::GpuSpec& spec = file.spec;
    const std::string capability = fmt::format("{}.{}", spec.compute_major, spec.compute_minor);
    out.push_back({{spec.id, spec.name, capability, fmt::to_string(spec.sm_count),
                    format_bytes(spec.memory), format_rate(spec.dram_bandwidth),
                    format_duration(spec.time_slice), format_duration(spec.context_switch)},
                   {{"id", spec.id},
                    {"name", spec.name},
                    {"recorded_names", file.recorded_names},
                    {"compute_capability", capability},
                    {"sm_count", spec.sm_count},
                    {"memory_bytes", spec.memory.value},
                    {"dram_bandwidth_bytes_per_s", spec.dram_bandwidth.value},
                    {"launch_latency_ns", to_ns(spec.launch_latency)},
                    {"stream_gap_ns", to_ns(spec.stream_gap)},
                    {"sync_latency_ns", to_ns(spec.sync_latency)},
                    {"completion_notice_ns", to_ns(spec.completion_notice)},
                    {"time_slice_ns", to_ns(spec.time_slice)},
                    {"context_switch_ns", to_ns(spec.context_switch)}}});
  }
  return out;
}

const char* family_of(const model::ModelSpec& spec) {
  if (std::holds_alternative<model::TransformerSpec>(spec.network)) return "transformer";
  if (std::holds_alternative<model::ConvolutionalSpec>(spec.network)) return "convolutional";
  return "graph";
}

Entries models(const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, model::read_model_folder(configs + "/models"));
  std::vector<ListEntry> out;
  for (const model::ModelFile& file : files) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto count, model::parameter_count(file.spec));
    out.push_back({{file.id, file.spec.name, family_of(file.spec),
                    fmt::format("{:.1f} M", count * 1e-6)},
                   {{"id", file.id},
                    {"name", file.spec.name},
                    {"family", family_of(file.spec)},
                    {"parameters", count},
                    {"source", file.source}}});
  }
  return out;
}

Entries clusters(const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files,
                             hardware::read_cluster_folder(configs + "/clusters"));
  std::vector<ListEntry> out;
  for (const hardware::ClusterFile& file : files) {
    const hardware::ClusterSpec& spec = file.spec;
    out.push_back({{file.id, fmt::to_string(spec.nodes), fmt::to_string(spec.gpus_per_node),
                    spec.device, spec.name},
                   {{"id", file.id},
                    {"name", spec.name},
                    {"device", spec.device},
                    {"nodes", spec.nodes},
                    {"gpus_per_node", spec.gpus_per_node}}});
  }
  return out;
}

// What is not 1: "data 4", "tensor 8 x pipeline 8".
std::string split_text(const synth::PlanSpec& plan) {
  std::string text;
  const auto add = [&](const char* axis, std::uint32_t ranks) {
    if (ranks > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis, ranks);
  };
  add("data", plan.data);
  add("tensor", plan.tensor);
  add("context", plan.context);
  add("pipeline", plan.pipeline);
  return text.empty() ? "one GPU" : text;
}

ListEntry plan_entry(const std::string& id, const synth::PlanSpec& plan) {
  return {{id, fmt::to_string(plan.world_size()), split_text(plan),
           plan.pipeline > 1 ? plan.schedule : "no pipeline", fmt::to_string(plan.global_batch),
           plan.software},
          {{"id", id},
           {"gpus", plan.world_size()},
           {"data", plan.data},
           {"tensor", plan.tensor},
           {"context", plan.context},
           {"expert", plan.expert},
           {"pipeline", plan.pipeline},
           {"schedule", plan.schedule},
           {"global_batch", plan.global_batch},
           {"micro_batch", plan.micro_batch},
           {"software", plan.software}}};
}

Entries plans(const std::string& configs) {
  return read_data_folder(
      configs + "/plans", "plan", [](const std::string& path) -> CheckedResult<ListEntry> {
        BUBBLESIM_ASSIGN_OR_RETURN(const synth::PlanSpec plan, synth::read_plan_file(path));
        return plan_entry(data_file_id(path), plan);
      });
}

ExitCode print_entries(const Entries& entries, bool json, TextTable table,
                       const std::string& footer) {
  if (!entries) return tl::make_unexpected(entries.error());
  for (const ListEntry& entry : *entries) table.row(entry.cells);
  print(json ? indented_text(list_json(*entries, [](const auto& entry) { return entry.json; }), 1) +
                   "\n"
             : table.text() + footer + "\n");
  return kExitOk;
}

/// `about`, `file`: of the line below the table, which says which files of the folder have more.
void add_list(CLI::App& parser, AppContext& context, const std::string& name,
              const std::string& help, Entries (*entries)(const std::string&),
              const TextTable& table, const std::string& about = "Every key",
              const std::string& file = "README.md") {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      parser.add_subcommand(name, help + "\n\nExample:\n  bubblesim " + name + " --json");
  command->add_flag("--json", *json, "Write JSON");
  command->callback([=, &context] {
    const std::string footer = about + ": " + context.config_folder + "/" + name + "/" + file;
    context.exit_code =
        reported(print_entries(entries(context.config_folder), *json, table, footer));
  });
}

}  // namespace

void add_list_commands(CLI::App& parser, AppContext& context) {
  auto [policies, arguments] = add_command(
      parser, context, list_policies,
      "policies", "Lists policies with every parameter, unit, default, range and source.\n\n"
                  "Example:\n  bubblesim policies tgs");
  policies->add_option("NAME", arguments->name, "Only this one");
  policies->add_flag("--json", arguments->json, "Write JSON");
  add_policy_library_option(*policies, context);
  add_list(parser, context, "devices", "Lists the devices that can be simulated.", devices,
           {{"device", "name", "cc", "SMs", "memory", "bandwidth", "slice", "switch"},
            {Align::kLeft, Align::kLeft},
            ""},
           "Every constant with unit and source", "*.json");
}

void add_synth_list_commands(CLI::App& parser, AppContext& context) {
  constexpr Align kLeft = Align::kLeft;
  constexpr Align kRight = Align::kRight;
  add_list(parser, context, "models", "Lists the neural networks of configs/models.", models,
           {{"model", "name", "family", "parameters"}, {kLeft, kLeft, kLeft}, ""});
  add_list(parser, context, "plans", "Lists the parallel plans of configs/plans.", plans,
           {{"plan", "GPUs", "split", "schedule", "batch", "software"},
            {kLeft, kRight, kLeft, kLeft, kRight, kLeft},
            ""});
  add_list(parser, context, "clusters", "Lists the clusters of configs/clusters.", clusters,
           {{"cluster", "nodes", "GPUs a node", "device", "name"},
            {kLeft, kRight, kRight, kLeft, kLeft},
            ""});
}

namespace {

// bubblesim schema: JSON Schemas of config files, for editors and other programs.

struct SchemaArguments {
  std::string kind;
  std::string folder;
};

int list_kinds(const std::vector<SchemaKind>& kinds) {
  for (const SchemaKind& kind : kinds) {
    fmt::print("{:<12} configs/{:<12} {}\n", kind.name, kind.folder, kind.what);
  }
  return kExitOk;
}

Result<void> write_kind(const SchemaKind& kind, const std::string& folder,
                        const AppContext& context) {
  const auto path = std::filesystem::path(folder) / (kind.name + ".schema.json");
  return write_output(path.string(), schema_text(kind, context.policies));
}

ExitCode run_schema(const SchemaArguments& arguments, const AppContext& context) {
  const std::vector<SchemaKind> kinds = schema_kinds(context.policies);
  if (arguments.kind.empty() && arguments.folder.empty()) return list_kinds(kinds);
  std::vector<std::string> names;
  for (const SchemaKind& kind : kinds) {
    names.push_back(kind.name);
    if (!arguments.kind.empty() && arguments.kind != kind.name) continue;
    if (arguments.folder.empty()) {
      std::fputs(schema_text(kind, context.policies).c_str(), stdout);
      return kExitOk;
    }
    BUBBLESIM_RETURN_IF_ERROR(write_kind(kind, arguments.folder, context));
    if (!arguments.kind.empty()) return kExitOk;
  }
  if (arguments.kind.empty()) return kExitOk;
  return fail(unknown_name_message("kind of file", arguments.kind, names));
}

}  // namespace

void add_schema_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_schema,
      "schema", "Prints the JSON Schema of a kind of config file, or lists the kinds.\n\n"
                "Example:\n  bubblesim schema run\n  bubblesim schema --write configs/schema");
  command->add_option("KIND", arguments->kind, "run, device, cluster, ...");
  command->add_option("--write", arguments->folder,
                      "Write KIND.schema.json of this kind, or of all, into a folder");
  add_policy_library_option(*command, context);
  context.outputs.writes(*command, "--write", files_named({""}, ".schema.json"));
}

}  // namespace bubblesim::app
