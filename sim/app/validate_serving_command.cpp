// bubblesim validate serving: measured language-model servers against simulated ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/app/validate_commands.hpp"
#include "sim/base/json.hpp"
#include "sim/step_cost/layer_file.hpp"
#include "sim/step_cost/steps_file.hpp"
#include "sim/validate/serving/prompt_tokens.hpp"
#include "sim/validate/serving/serving_text.hpp"

namespace bubblesim::app {
namespace {

struct ServingArguments {
  std::vector<std::string> bundles;
  std::vector<std::string> layers;
  std::vector<std::string> steps;
  std::vector<std::string> prompts;
  std::string engine = "vllm-0.19";
  std::string requests;
  JudgeOutputs outputs;
};

/// Files that an option names: one for all bundles, or one each.
Result<void> check_count(const ServingArguments& arguments, std::string option,
                         std::size_t count) {
  if (count <= 1 || count == arguments.bundles.size()) return {};
  return fail({}, std::move(option), "found " + std::to_string(count) + " for " +
                                         std::to_string(arguments.bundles.size()) +
                                         " bundles; expected one for all, or one each, in their "
                                         "order");
}

/// None: the kernel model.
CheckedResult<std::vector<step_cost::LayerTables>> layers_of(const ServingArguments& arguments) {
  BUBBLESIM_RETURN_IF_ERROR(check_count(arguments, "--layers", arguments.layers.size()));
  std::vector<step_cost::LayerTables> out;
  for (const std::string& path : arguments.layers) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto tables, step_cost::read_layers_at(path));
    out.push_back(std::move(tables));
  }
  return out;
}

/// None: the kernel model.
CheckedResult<std::vector<step_cost::RecordedSteps>> steps_of(const ServingArguments& arguments) {
  BUBBLESIM_RETURN_IF_ERROR(check_count(arguments, "--steps", arguments.steps.size()));
  std::vector<step_cost::RecordedSteps> out;
  for (const std::string& path : arguments.steps) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto steps, step_cost::read_steps_file(path));
    out.push_back(std::move(steps));
  }
  return out;
}

CheckedResult<std::vector<validate::JudgedBundle>> judge_bundles(
    const ServingArguments& arguments, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto layers, layers_of(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto steps, steps_of(arguments));
  const auto& prompts = arguments.prompts;
  BUBBLESIM_RETURN_IF_ERROR(check_count(arguments, "--prompts", prompts.size()));
  std::vector<validate::JudgedBundle> out;
  for (std::size_t i = 0; i < arguments.bundles.size(); ++i) {
    validate::SetupRequest setup{configs, arguments.engine, {}, {}};
    if (!layers.empty()) setup.layers = layers[layers.size() == 1 ? 0 : i];
    if (!steps.empty()) setup.steps = steps[steps.size() == 1 ? 0 : i];
    BUBBLESIM_ASSIGN_OR_RETURN(auto bundle, validate::read_serving_bundle(arguments.bundles[i]));
    if (!prompts.empty()) {
      BUBBLESIM_RETURN_IF_ERROR(
          validate::add_prompt_tokens(bundle, prompts[prompts.size() == 1 ? 0 : i]));
    }
    BUBBLESIM_ASSIGN_OR_RETURN(auto judged, validate::judge_bundle(bundle, setup));
    out.push_back(std::move(judged));
  }
  return out;
}

ExitCode validate_serving(const ServingArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto judged, judge_bundles(arguments, context.config_folder));
  fmt::print("{}", validate::serving_text(judged, !arguments.outputs.summary));
  const std::string json = indented_text(validate::serving_json(judged), 2) + "\n";
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.outputs.csv, validate::serving_figures_csv(judged)));
  BUBBLESIM_RETURN_IF_ERROR(write_output(arguments.outputs.json, json));
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.requests, validate::serving_requests_csv(judged)));
  return kExitOk;
}

}  // namespace

void add_validate_serving(CLI::App& parent, AppContext& context) {
  auto arguments = std::make_shared<ServingArguments>();
  CLI::App* command = parent.add_subcommand(
      "serving", "Measured runs of a language-model server (folders of LLMServingSim's `bench "
                 "run`): the same requests on a server with the same settings, simulated alone. "
                 "Prints time to first token, time per output token and latency of both, at mean, "
                 "p50, p90, p95 and p99. Step times are from --layers or --steps, else "
                 "from bubblesim's kernel model.");
  command->add_option("BUNDLE", arguments->bundles, "Folders with vllm/ and config.json")
      ->required();
  CLI::Option* const layers = command->add_option("--layers", arguments->layers,
                      "Layer times: a file of python3 -m bubblesim.layers; "
                      "one for all bundles, or one each (may be repeated)");
  command
      ->add_option("--steps", arguments->steps,
                   "Steps of the engine as a trace shows them, a file of python3 -m "
                   "bubblesim.steps, that correct the kernel model; one for all bundles, or one "
                   "each (may be repeated)")
      ->excludes(layers);
  command->add_option("--prompts", arguments->prompts,
                      "The workload that the bundle was measured with (LLMServingSim's "
                      "workloads/*.jsonl): its token ids say what prompts share, which the prefix "
                      "cache computes once; one for all bundles, or one each (may be repeated)");
  command->add_option("--engine", arguments->engine, "A file of configs/engines")
      ->capture_default_str();
  command->add_option("--requests", arguments->requests,
                      "Write every request's times, measured and simulated, as CSV here");
  add_judge_outputs(*command, arguments->outputs);
  context.outputs.writes(*command, "--requests");
  context.outputs.writes(*command, "--json");
  context.outputs.writes(*command, "--csv");
  command->callback([arguments, &context] {
    context.exit_code = reported(validate_serving(*arguments, context));
  });
}

}  // namespace bubblesim::app
