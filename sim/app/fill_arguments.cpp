#include "sim/app/fill_command.hpp"

#include <CLI/CLI.hpp>

#include "sim/app/policy_options.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::app {

void add_fill_options(CLI::App& command, FillArguments& arguments) {
  command.add_option("--policy", arguments.policy, "Who decides (bubblesim policies)")->required();
  command.add_option("--set", arguments.values, "A parameter of the policy: name=value; repeatable")
      ->allow_extra_args(false);
  add_policy_library_option(command, arguments.policy_libraries);
  command.add_option("--train", arguments.train, "The training program: a line for /bin/sh")
      ->required();
  command.add_option("--fill", arguments.fill, "The inference program: a line for /bin/sh")
      ->required();
  command.add_option("--device", arguments.device,
                     "What the policy is told of the GPU where NVIDIA's driver does not say it "
                     "(bubblesim devices; default: h100)");
  command.add_option("--gpu", arguments.gpu,
                     "The GPU that both programs see: index or UUID (default: what "
                     "CUDA_VISIBLE_DEVICES says)");
  command.add_option("--filler-role", arguments.filler_role, "What the policy takes the filler for")
      ->check(CLI::IsMember({"offline", "online", "training"}))->capture_default_str();
  command.add_option("--as", arguments.substitute,
                     "How to share the GPU where the policy's own way cannot be had")
      ->check(CLI::IsMember({"time-sliced"}));
  command.add_option("--window", arguments.window,
                     "Launches of the filler on the GPU at once, at most; 0: any number")
      ->capture_default_str();
  command.add_flag("--gate-training", arguments.gate_training,
                   "Training waits for verdicts too (some policies make it wait by themselves)");
  command.add_option("--after-training", arguments.after_training,
                     "What becomes of the filler when training has ended")
      ->check(CLI::IsMember({"stop", "keep"}))->capture_default_str();
  command.add_option("--after-death", arguments.after_death,
                     "The same where training was killed or exits with a code other than 0")
      ->check(CLI::IsMember({"stop", "keep"}))->capture_default_str();
  command.add_option("--grace", arguments.grace,
                     "Between the filler's SIGTERM and its SIGKILL")->capture_default_str();
  command.add_option("--fill-log", arguments.fill_log,
                     "Where the filler's outputs go (default: both to standard error)");
  command.add_option("--library", arguments.library,
                     "The gate to preload (default: the libbubblesim_gate.so that came with this "
                     "program)");
  command.add_flag("--json", arguments.json, "End standard output with a line of JSON");
}

CheckedResult<policy::ParameterSet> read_policy_values(const policy::PolicySpec& spec,
                                                       const std::vector<std::string>& values) {
  std::vector<policy::GivenParameter> given;
  Errors faults;
  for (const std::string& value : values) {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      faults.push_back({"--set", {}, "found \"" + value + "\", expected name=value"});
      continue;
    }
    given.push_back({std::string_view(value).substr(0, equals), value.substr(equals + 1)});
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return policy::check_parameters(spec, given, "--set", "");
}

}  // namespace bubblesim::app
