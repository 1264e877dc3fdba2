// bubblesim fill: runs a training program and an inference program, neither changed, side by side
// on the GPU of this machine, the second gated by a policy.
//
// Training owns standard input and output; what there is to say goes to standard error, and with
// --json one line of JSON ends standard output. The exit code is training's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "capture/live/gpu_facts.hpp"
#include "capture/live/job_variables.hpp"
#include "sim/app/fill_command.hpp"
#include "sim/app/fill_text.hpp"
#include "sim/app/own_process.hpp"
#include "sim/app/policy_libraries.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/schedule/policy_terms.hpp"

namespace bubblesim::app {
namespace {

constexpr const char* kDevice = "h100";

Result<std::string> gate_library(const std::string& wanted) {
  return capture::find_library(
      program_folder(), wanted, {"libbubblesim_gate.so", "the gate", "capture/live/interpose"});
}

std::vector<policy::ClientInfo> clients_of(const FillArguments& arguments) {
  std::vector<policy::ClientInfo> clients(2);
  clients[0].name = "training";
  clients[1].id = ClientId{1};
  clients[1].name = "filler";
  clients[1].role = arguments.filler_role == "online"    ? policy::Role::kOnline
                    : arguments.filler_role == "offline" ? policy::Role::kOffline
                                                         : policy::Role::kTraining;
  return clients;
}

capture::FillerThen then(const std::string& word) {
  return word == "keep" ? capture::FillerThen::kKeep : capture::FillerThen::kStop;
}

/// All that a run needs, checked before anything starts.
struct PreparedFill {
  std::unique_ptr<policy::Policy> policy;
  capture::FillSetup setup;
};

CheckedResult<PreparedFill> prepare(const FillArguments& arguments, AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto spec, context.policies.find(arguments.policy));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto parameters, read_policy_values(*spec, arguments.values));
  const std::string device = arguments.device.empty() ? kDevice : arguments.device;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto gpu,
                             hardware::find_gpu_spec(device, context.device_folder()));
  const auto grace = parse_duration(arguments.grace);
  if (!grace) return fail("--grace", {}, grace.error().message);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto library, gate_library(arguments.library));
  PreparedFill prepared;
  BUBBLESIM_ASSIGN_OR_RETURN(prepared.policy, policy::make_policy(*spec, parameters));
  capture::FillSetup& setup = prepared.setup;
  setup.environment = inherited_environment();
  setup.clients = clients_of(arguments);
  setup.clients[0].ranks = capture::ranks_of_job(setup.environment);
  setup.device = arguments.gpu;
  const capture::GpuFacts facts =
      capture::facts_of_gpu(schedule::gpu_info(gpu, schedule::DrivenBy::kGate), setup.device,
                            setup.environment);
  BUBBLESIM_ASSIGN_OR_RETURN(
      setup.plan,
      capture::plan_live(*spec, parameters, *prepared.policy, facts.gpu, setup.clients,
                         arguments.substitute.empty() ? capture::Substitute::kRefuse
                                                      : capture::Substitute::kTimeSliced));
  setup.plan.notes.push_back(facts.text);
  setup.spec = spec;
  setup.policy = prepared.policy.get();
  setup.library = library;
  setup.grace = *grace;
  return prepared;
}

ExitCode fill(const FillArguments& arguments, AppContext& context) {
  BUBBLESIM_RETURN_IF_ERROR(load_policy_libraries(arguments.policy_libraries, context));
  BUBBLESIM_ASSIGN_OR_RETURN(auto prepared, prepare(arguments, context));
  capture::FillSetup& setup = prepared.setup;
  setup.train = arguments.train;
  setup.fill = arguments.fill;
  setup.folder = temporary_folder();
  setup.fill_log = arguments.fill_log;
  setup.window = arguments.window;
  setup.ask_training = arguments.gate_training;
  setup.after_end = then(arguments.after_training);
  setup.after_death = then(arguments.after_death);
  setup.say = [](const std::string& text) { fmt::print(stderr, "bubblesim: {}\n", text); };
  BUBBLESIM_ASSIGN_OR_RETURN(const auto report, capture::run_fill(setup));
  fmt::print(stderr, "\n{}", fill_text(report, arguments.policy, setup.plan));
  if (arguments.json) fmt::print("{}", fill_json(report, arguments.policy, setup.plan));
  if (report.fault) report_fault(*report.fault);
  const int exit_code = report.training.end ? report.training.end->exit_code : kExitUntrusted;
  return exit_code == kExitOk && report.fault ? kExitUntrusted : exit_code;
}

constexpr const char* kFillHelp =
    "Runs a training program and an inference program side by side on this machine's GPU. Neither "
    "is changed: a preloaded library stands before the driver, and the policy decides when the "
    "filler's launches go on. Policies that need measured bubbles or profiles of kernels are "
    "refused before anything starts.\n\n"
    "Examples:\n"
    "  bubblesim fill --policy tgs --train \"torchrun train.py\" --fill \"python3 serve.py\"\n"
    "  bubblesim fill --policy specinf --set budget=0.05 --set reference=10s --fill-log "
    "serve.log --train \"python3 train.py\" --fill \"python3 serve.py\" --json\n"
    "  bubblesim fill --policy xsched --window 4 --after-training keep "
    "--train \"python3 train.py\" --fill \"python3 batch.py\"\n\n"
    "When training has ended the gate is open; the filler is told to end (SIGTERM, after --grace "
    "SIGKILL) or kept. The filler's end leaves training alone. Every signal is "
    "passed on to both, which decide. Exit codes: training's own "
    "(128 + n: ended by signal n); where that is 0, 1 if the policy had to be stopped. 2: nothing "
    "was started, for what was asked cannot be.";

}  // namespace

void add_fill_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<FillArguments>();
  CLI::App* command = parser.add_subcommand("fill", kFillHelp);
  add_fill_options(*command, *arguments);
  context.outputs.writes(*command, "--fill-log");
  command->callback([arguments, &context] {
    context.exit_code = reported(fill(*arguments, context));
  });
}

}  // namespace bubblesim::app
