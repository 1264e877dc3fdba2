// bubblesim synth-inference: an inference service without a recording: its time, memory and trace.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "sim/app/shared/app.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/synth/synthesise.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::app {
namespace {

const std::map<std::string, model::Precision> kPrecisions = [] {
  std::map<std::string, model::Precision> named;
  for (const auto& [name, value] : model::kPrecisionNames) named.emplace(name, value);
  return named;
}();
const std::map<std::string, synth::DecodeMode> kModes{{"eager", synth::DecodeMode::kEager},
                                                      {"graph", synth::DecodeMode::kGraph}};
const std::map<std::string, model::AttentionKernels> kAttention{
    {"flash", model::AttentionKernels::kFlash}, {"unfused", model::AttentionKernels::kUnfused}};

struct ServiceArguments {
  synth::InferenceNames names;
  std::string device;
  std::string draft;
  std::vector<std::uint32_t> tree{1, 1, 3, 1};
  double acceptance = 0.7;
  std::uint32_t passes = 1;
  std::string output;
};

void print_service(const ServiceArguments& arguments, const synth::InferenceProgram& made,
                   Duration time) {
  const double seconds = to_seconds(time);
  const double gb = 1e-9;
  fmt::print("{} on {}, batch {}\n", arguments.names.model, arguments.device,
             arguments.names.batch);
  fmt::print("  a batch      {:.3f} ms, {:.1f} requests/s\n", seconds * 1e3,
             arguments.names.batch / seconds);
  if (arguments.names.prompt_tokens) {
    const double tokens = static_cast<double>(arguments.names.output_tokens);
    fmt::print("  tokens       {:.1f}/s, {} passes of the model a batch\n",
               arguments.names.batch * tokens / seconds, made.steps);
  }
  fmt::print("  kernels      {}, {:.1f} TFLOP/s\n", made.kernels, made.flops / seconds * 1e-12);
  fmt::print("  memory       {:.2f} GB: weights {:.2f}, KV cache {:.2f}, activations {:.2f}\n",
             made.memory.total() * gb, made.memory.weights * gb, made.memory.kv_cache * gb,
             made.memory.activations * gb);
}

Result<void> write_trace(const ServiceArguments& arguments,
                         const synth::InferenceRequest& request) {
  if (arguments.output.empty()) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(const traces::JobTrace trace,
                             synth::inference_trace(request, arguments.passes));
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.output));
  BUBBLESIM_RETURN_IF_ERROR(traces::format::write_job(arguments.output, trace));
  fmt::print("wrote {}\n", arguments.output);
  return {};
}

ExitCode run_service(ServiceArguments& arguments, const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto gpu,
                             hardware::find_gpu_spec(arguments.device, context.device_folder()));
  if (!arguments.draft.empty()) {
    arguments.names.speculation = {arguments.draft, {arguments.tree}, arguments.acceptance};
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto request,
                             synth::find_inference(arguments.names, gpu, context.config_folder));
  BUBBLESIM_ASSIGN_OR_RETURN(auto made, synth::inference_program(request));
  workload::JobProgram job;
  job.ranks.push_back(made.program);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto alone, synth::time_alone(job, gpu));
  print_service(arguments, made, alone.time);
  BUBBLESIM_RETURN_IF_ERROR(write_trace(arguments, request));
  return kExitOk;
}

void add_generation(CLI::App& command, ServiceArguments& arguments, CLI::Option* one_pass) {
  CLI::Option* prompt = command.add_option("--prompt-tokens", arguments.names.prompt_tokens,
                                           "Generate: tokens of a prompt");
  prompt->excludes(one_pass)->check(CLI::Range(1U, 1U << 24U));
  const auto generating = [&](CLI::Option* option) { return option->needs(prompt); };
  generating(command.add_option("--output-tokens", arguments.names.output_tokens,
                                "Tokens that follow the prompt (default 1)"))
      ->check(CLI::Range(1U, 1U << 24U));
  generating(command.add_option("--decode", arguments.names.decode,
                                "eager: a launch a kernel; graph: one a pass (default eager)"))
      ->transform(CLI::CheckedTransformer(kModes).description(""))
      ->transform(CLI::IsMember(kModes));
  CLI::Option* draft = generating(command.add_option(
      "--draft", arguments.draft, "Speculate: a file of configs/models, or a path"));
  command
      .add_option("--tree", arguments.tree,
                  "Drafted children of each node, by level (default 1,1,3,1)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 65'536U))
      ->needs(draft);
  command
      .add_option("--acceptance", arguments.acceptance,
                  "Chance that a drafted token is accepted (default 0.7)")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(draft);
}

}  // namespace

void add_synth_inference_command(CLI::App& parser, AppContext& context) {
  auto [command, arguments] = add_command(
      parser, context, run_service, "synth-inference",
      "Makes an inference service from a model: its time and memory alone on a GPU, and its "
      "trace.\n\n"
      "Examples:\n"
      "  bubblesim synth-inference --model bert-base --batch 8 --sequence 128 --device h100 "
      "-o svc.btr\n"
      "  bubblesim synth-inference --model llama2-7b --device a100-80gb --prompt-tokens 512 "
      "--output-tokens 64 --decode graph\n"
      "  bubblesim synth-inference --model llama2-7b --device h100 --prompt-tokens 128 "
      "--output-tokens 128 --draft llama-68m --tree 1,1,3,1,1,1,1,1");
  synth::InferenceNames& names = arguments->names;
  command->add_option("--model", names.model, "A file of configs/models, or a path")->required();
  command->add_option("--device", arguments->device, "A file of configs/devices, or a path")
      ->required();
  command->add_option("--batch", names.batch, "Requests served together (default 1)")
      ->check(CLI::Range(1U, 1U << 20U));
  CLI::Option* one_pass = command->add_option("--sequence", names.sequence,
                                              "One pass: tokens (default: what the model holds)");
  one_pass->check(CLI::Range(1U, 1U << 24U));
  command->add_option("--attention", names.attention, "One pass: flash (default) or unfused")
      ->transform(CLI::CheckedTransformer(kAttention).description(""))
      ->transform(CLI::IsMember(kAttention));
  add_generation(*command, *arguments, one_pass);
  command->add_option("--precision", names.precision, "fp32, tf32, fp16 (default), bf16, fp8")
      ->transform(CLI::CheckedTransformer(kPrecisions).description(""))
      ->transform(CLI::IsMember(kPrecisions));
  command->add_option("--software", names.software,
                      "A file of configs/software (default pytorch)");
  command->add_option("--efficiency", names.efficiency,
                      "A file of configs/efficiency (default: the device's)");
  command->add_option("-o,--output", arguments->output, "Write a trace: a .btr file");
  command->add_option("--passes", arguments->passes, "Batches that the trace holds (default 1)")
      ->check(CLI::Range(1U, 100'000U));
  context.outputs.writes(*command, "--output");
}

}  // namespace bubblesim::app
