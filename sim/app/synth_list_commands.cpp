// bubblesim models, plans, clusters: what `bubblesim synth` can put together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "sim/app/app.hpp"
#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/model/model_file.hpp"
#include "sim/model/training_work.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

/// A file of a list: its row for people, and the same for programs.
struct ListEntry {
  std::vector<std::string> cells;
  Json json;
};

using Entries = CheckedResult<std::vector<ListEntry>>;

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
                       const std::string& where) {
  if (!entries) return tl::make_unexpected(entries.error());
  Json all = Json::array();
  for (const ListEntry& entry : *entries) {
    all.push_back(entry.json);
    table.row(entry.cells);
  }
  if (json) {
    std::fputs((indented_text(all, 1) + "\n").c_str(), stdout);
  } else {
    fmt::print("{}Every key: {}/README.md\n", table.text(), where);
  }
  return kExitOk;
}

void add_list(CLI::App& parser, AppContext& context, const std::string& name,
              const std::string& help, Entries (*entries)(const std::string&),
              const TextTable& table) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      parser.add_subcommand(name, help + "\n\nExample:\n  bubblesim " + name + " --json");
  command->add_flag("--json", *json, "Write JSON");
  command->callback([json, &context, entries, name, table] {
    context.exit_code = reported(print_entries(entries(context.config_folder), *json, table,
                                               context.config_folder + "/" + name));
  });
}

}  // namespace

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

}  // namespace bubblesim::app
