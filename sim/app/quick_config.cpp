#include "sim/app/quick_config.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::app {
namespace {

constexpr std::array<std::string_view, 7> kDefaultPolicies{
    "exclusive", "time_slicing", "mps", "tgs", "specinf", "pipefill", "ideal"};

bool is_default(const std::string& name, const AppContext& context) {
  return context.policy_files.contains(name) ||
         std::find(kDefaultPolicies.begin(), kDefaultPolicies.end(), name) !=
             kDefaultPolicies.end();
}

std::string filler_name(const QuickRun& quick) {
  return std::filesystem::path(quick.filler).stem().stem().string();
}

std::string absolute(const std::string& path) {
  std::error_code fault;
  const auto whole = std::filesystem::absolute(path, fault).lexically_normal();
  return fault ? path : whole.string();
}

Json training_json(const QuickRun& quick) {
  if (quick.synth) {
    Json synth{{"model", quick.synth->model}, {"cluster", quick.synth->cluster}};
    if (const auto* plan = std::get_if<std::string>(&quick.synth->plan)) synth["plan"] = *plan;
    return {{"synth", std::move(synth)}};
  }
  Json traces = Json::array();
  for (const std::string& path : quick.training) traces.push_back(absolute(path));
  Json training{{"trace", std::move(traces)}};
  if (!quick.cluster.empty()) training["cluster"] = quick.cluster;
  return training;
}

/// Of NAME:PARAMETER=VALUE:..., what stands behind the name; nothing: not of this form.
std::optional<std::vector<policy::GivenParameter>> given_parameters(std::string_view text) {
  std::vector<policy::GivenParameter> given;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    given.push_back({part.substr(0, equals), std::string(part.substr(equals + 1))});
  }
  return given;
}

CheckedResult<run::PolicyChoice> choose_policy(const std::string& text,
                                               const AppContext& context) {
  const auto spec = context.policies.find(text.substr(0, text.find(':')));
  if (!spec) return tl::unexpected<Errors>(Errors{{"--policy", {}, spec.error().message}});
  const auto given = given_parameters(text);
  if (!given) {
    const std::string found = "found \"" + text + "\", expected NAME:PARAMETER=VALUE";
    return tl::unexpected<Errors>(Errors{{"--policy", {}, found}});
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto parameters,
                             policy::check_parameters(**spec, *given, "--policy", ""));
  return run::PolicyChoice{(*spec)->name, std::move(parameters)};
}

}  // namespace

std::string quick_config_text(const QuickRun& quick, observe::FillerMode mode) {
  Json filler{{"name", filler_name(quick)},
              {"mode", observe::filler_mode_name(mode)},
              {"program", {{"trace", absolute(quick.filler)}}}};
  if (!quick.filler_memory.empty()) filler["memory"] = quick.filler_memory;
  if (mode == observe::FillerMode::kOnline) {
    filler["arrivals"] = {{"process", "poisson"}, {"rate_per_s", 1}};
  }
  Json config{{"name", observe::filler_mode_name(mode)}, {"seed", quick.seed}};
  if (!quick.device.empty()) config["device"] = quick.device;
  config["duration"] = quick.precision ? "auto" : format_duration(quick.duration);
  config["warmup"] = format_duration(quick.warmup);
  config["training"] = training_json(quick);
  config["fillers"] = Json::array({std::move(filler)});
  config["policies"] = Json::array({"exclusive"});
  return compact_text(config);
}

CheckedResult<std::vector<run::PolicyChoice>> choose_policies(const std::string& names,
                                                              const AppContext& context) {
  std::vector<run::PolicyChoice> choices;
  Errors faults;
  const std::vector<std::string> list = names.empty() ? std::vector<std::string>{""}
                                                      : split_list(names);
  for (const std::string& text : list) {
    if (text.empty() || text == "all") {
      for (const policy::PolicySpec& spec : context.policies.all()) {
        if (text.empty() && !is_default(spec.name, context)) continue;
        choices.push_back({spec.name, policy::defaults(spec)});
      }
      continue;
    }
    auto choice = choose_policy(text, context);
    if (choice) {
      choices.push_back(std::move(*choice));
    } else {
      faults.insert(faults.end(), choice.error().begin(), choice.error().end());
    }
  }
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  if (choices.empty()) {
    return tl::unexpected<Errors>(Errors{{"--policy", {}, "found no name, expected a,b,c or all"}});
  }
  if (Errors repeated = run::repeated_policies(choices, "--policy", {}); !repeated.empty()) {
    return tl::unexpected<Errors>(std::move(repeated));
  }
  return choices;
}

CheckedResult<run::RunConfig> quick_config(const QuickRun& quick, observe::FillerMode mode,
                                           double requests_per_s, std::size_t gpus,
                                           const AppContext& context) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto policies, choose_policies(quick.policies, context));
  run::RunConfig config;
  config.name = observe::filler_mode_name(mode);
  config.seed = quick.seed;
  if (!quick.device.empty()) config.device = quick.device;
  config.duration = quick.duration;
  config.precision = quick.precision;
  config.warmup = quick.warmup;
  config.training.traces = quick.training;
  if (!quick.cluster.empty()) config.training.cluster = quick.cluster;
  config.training.synth = quick.synth;
  config.policies = std::move(policies);
  run::FillerConfig filler;
  filler.name = filler_name(quick);
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
