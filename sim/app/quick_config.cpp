#include "sim/app/quick_config.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace bubblesim::app {
namespace {

constexpr std::array<std::string_view, 7> kDefaultPolicies{
    "exclusive", "time_slicing", "mps", "tgs", "specinf", "pipefill", "ideal"};

bool is_default(const std::string& name, const AppContext& context) {
  return context.policy_files.contains(name) ||
         std::find(kDefaultPolicies.begin(), kDefaultPolicies.end(), name) !=
             kDefaultPolicies.end();
}

}  // namespace

CheckedResult<std::vector<run::PolicyChoice>> choose_policies(const std::string& names,
                                                              const AppContext& context) {
  std::vector<run::PolicyChoice> choices;
  Errors faults;
  if (names.empty() || names == "all") {
    for (const policy::PolicySpec& spec : context.policies.all()) {
      if (names.empty() && !is_default(spec.name, context)) continue;
      choices.push_back({spec.name, policy::defaults(spec)});
    }
    return choices;
  }
  for (const std::string& name : split_list(names)) {
    const auto spec = context.policies.find(name);
    if (!spec) {
      Error fault = spec.error();
      fault.file = "--policy";
      faults.push_back(std::move(fault));
      continue;
    }
    choices.push_back({name, policy::defaults(**spec)});
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  if (choices.empty()) {
    return tl::unexpected<Errors>(Errors{{"--policy", {}, "found no name, expected a,b,c or all"}});
  }
  return choices;
}

CheckedResult<run::RunConfig> quick_config(const QuickRun& quick, observe::FillerMode mode,
                                           double requests_per_s, std::size_t gpus,
                                           const AppContext& context) {
  auto policies = choose_policies(quick.policies, context);
  if (!policies) return tl::unexpected<Errors>(policies.error());
  run::RunConfig config;
  config.name = observe::filler_mode_name(mode);
  config.seed = quick.seed;
  if (!quick.device.empty()) config.device = quick.device;
  config.duration = quick.duration;
  config.warmup = quick.warmup;
  config.training.traces = quick.training;
  config.training.synth = quick.synth;
  config.policies = std::move(*policies);
  run::FillerConfig filler;
  filler.name = std::filesystem::path(quick.filler).stem().stem().string();
  filler.mode = mode;
  filler.program = run::TraceProgram{quick.filler};
  if (mode == observe::FillerMode::kOnline) {
    const double rate = quick.load * requests_per_s * static_cast<double>(gpus);
    filler.arrivals = workload::PoissonArrivals{rate};
  }
  config.fillers.push_back(std::move(filler));
  return config;
}

}  // namespace bubblesim::app
