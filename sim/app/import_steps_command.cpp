// bubblesim import steps: what an engine's steps took, from a trace of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "sim/app/import_commands.hpp"
#include "sim/base/json.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/step_cost/steps_file.hpp"
#include "sim/text/counter_text.hpp"

namespace bubblesim::app {
namespace {

struct StepsArguments {
  std::string trace;
  std::string output;
  std::optional<double> context;
};

void print_kind(const char* kind, const std::vector<step_cost::RecordedStep>& steps,
                bool with_prompts) {
  std::size_t count = 0;
  double least = 0, most = 0, us = 0;
  for (const step_cost::RecordedStep& step : steps) {
    if ((step.prompts.tokens > 0) != with_prompts) continue;
    const double tokens = step.prompts.tokens + step.singles.tokens;
    least = count == 0 ? tokens : std::min(least, tokens);
    most = std::max(most, tokens);
    us += step.kernels_us;
    ++count;
  }
  if (count == 0) return fmt::print("  {}: none\n", kind);
  fmt::print("  {}: {}, of {:.0f} to {:.0f} tokens, kernels of {:.3f} ms in the mean\n", kind,
             count, least, most, 1e-3 * us / static_cast<double>(count));
}

ExitCode import_steps(const StepsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto trace,
                             run::load_trace({arguments.trace}, {}, threads_of(0)));
  if (trace.job.ranks.size() != 1) {
    return fail(arguments.trace, {},
                "found " + std::to_string(trace.job.ranks.size()) +
                    " ranks; expected one GPU of the server");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto steps,
                             step_cost::recorded_steps(trace.job.ranks.front(), arguments.context));
  BUBBLESIM_RETURN_IF_ERROR(
      write_output(arguments.output, compact_text(step_cost::steps_json(steps)) + "\n"));
  fmt::print("{}: {} steps of {}{}{}\n", arguments.output, steps.steps.size(), steps.source,
             steps.gpu.empty() ? "" : " on ", steps.gpu);
  print_kind("that decode only", steps.steps, false);
  print_kind("with prompts", steps.steps, true);
  CounterSet counters = steps.counters;
  counters.merge(trace.counters);
  fmt::print("{}", counter_notes(counters));
  return counters.has_error() ? kExitUntrusted : kExitOk;
}

}  // namespace

void add_import_steps(CLI::App& parent, AppContext& context) {
  auto arguments = std::make_shared<StepsArguments>();
  CLI::App* command = parent.add_subcommand(
      "steps", "What each step of a language-model server took, from a profiler's trace of the "
               "engine that names its steps (vLLM and SGLang under PyTorch's profiler), as one "
               "file for `bubblesim validate serving --steps` and for \"steps\" of a config's "
               "engine.\nExample: bubblesim import steps rank0.pt.trace.json.gz --context 900 "
               "-o steps.json");
  command->add_option("TRACE", arguments->trace, "A trace of one GPU of the server")->required();
  command->add_option("-o,--output", arguments->output, "The file to write")->required();
  command->add_option("--context", arguments->context,
                      "Tokens that a generating sequence attends to, its new one included, in the "
                      "mean: for traces whose steps do not say it")
      ->check(CLI::Range(1.0, 1e7));
  context.outputs.writes(*command, "--output");
  command->callback([arguments, &context] {
    context.exit_code = reported(import_steps(*arguments));
  });
}

}  // namespace bubblesim::app
