#include "sim/policy/gate_terms.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bubblesim::policy {
namespace {

/// Null: the policy has no such parameter.
const Value* value_of(const ParameterSet& given, std::string_view name) {
  const auto found =
      std::ranges::find_if(given, [name](const auto& term) { return term.first == name; });
  return found == given.end() ? nullptr : &found->second;
}

Duration duration_of(const ParameterSet& given, std::string_view name) {
  const Value* value = value_of(given, name);
  const Duration* span = value == nullptr ? nullptr : std::get_if<Duration>(value);
  return span == nullptr ? Duration{} : *span;
}

}  // namespace

bool hears_launches(const PolicySpec& spec) {
  return spec.needs.launches || spec.needs.completions;
}

bool holds_training(const PolicySpec& spec, const ParameterSet& given) {
  return spec.training_gate && spec.training_gate(given) == TrainingGate::kAsks;
}

GateCosts gate_costs(const PolicySpec& spec, const ParameterSet& given, const GateCosts* gate) {
  if (spec.oracle) return {};
  if (gate != nullptr) return gate->always || hears_launches(spec) ? *gate : GateCosts{};
  if (value_of(given, "tell") != nullptr) {
    return {.ask = duration_of(given, "ask"), .tell = duration_of(given, "tell")};
  }
  const std::vector<SystemFeature> demands = demanded(spec, given);
  const bool intercepts = std::ranges::count(demands, SystemFeature::kLaunchInterception) > 0;
  return intercepts ? kMeasuredGate : GateCosts{};
}

GateTerms gate_terms(const PolicySpec& spec, const ParameterSet& given, ClientId client,
                     const GateCosts& costs) {
  if (client != ClientId{0} || holds_training(spec, given)) {
    return {true, costs.ask, costs.tell, costs.sleep};
  }
  if (!spec.training_gate) return {true, costs.tell, costs.tell, costs.sleep};
  const bool tells = costs.always || spec.training_gate(given) == TrainingGate::kTells;
  return {false, costs.ask, tells ? costs.tell : Duration{}, costs.sleep};
}

}  // namespace bubblesim::policy
