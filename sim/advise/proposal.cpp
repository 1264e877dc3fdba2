#include "sim/advise/proposal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

constexpr double kEqualGain = 0.003;  // a share of the gain
constexpr double kEqualKept = 0.001;

Json value_json(const policy::Value& value) {
  struct ToJson {
    Json operator()(bool flag) const { return flag; }
    Json operator()(std::int64_t number) const { return number; }
    Json operator()(double number) const { return number; }
    Json operator()(Duration span) const { return format_duration(span); }
    Json operator()(const std::string& text) const { return text; }
  };
  return std::visit(ToJson{}, value);
}

// Whole steps of a logarithmic scale, so that "equal" is transitive.
double gain_step(double gain) {
  if (gain <= 1e-6) return -std::numeric_limits<double>::infinity();
  return std::floor(std::log(gain) / std::log1p(kEqualGain));
}

double beyond(std::optional<Duration> limit, std::optional<Duration> latency) {
  if (!limit || !latency) return 0;
  return std::max(0.0, to_seconds(*latency) / to_seconds(*limit) - 1);
}

double kept_step(double kept) { return std::floor(kept / kEqualKept); }

}  // namespace

std::string proposal_text(const Proposal& proposal) {
  std::string text = proposal.policy->name;
  for (const auto& [name, value] : proposal.parameters) {
    text += " " + name + "=" + policy::value_text(value);
  }
  for (const auto& [pointer, value] : proposal.places) text += " " + pointer + "=" + value;
  return text;
}

policy::ParameterSet parameters_of(const Proposal& proposal) {
  std::map<std::string, policy::Value, std::less<>> values;
  for (const auto& [name, value] : policy::defaults(*proposal.policy)) values[name] = value;
  for (const auto& [name, value] : proposal.parameters) values[name] = value;
  return policy::ParameterSet(std::move(values));
}

Duration settling_of(const Proposal& proposal, Duration iteration) {
  const policy::PolicySpec& spec = *proposal.policy;
  return spec.settling ? spec.settling(parameters_of(proposal), iteration) : Duration{};
}

Trial settled(Trial trial, Duration iteration) {
  const Duration missing = settling_of(trial.proposal, iteration) - trial.warmup;
  if (missing <= Duration{}) return trial;
  trial.warmup += missing;
  trial.length += missing;
  return trial;
}

std::vector<policy::SystemFeature> demanded(const Proposal& proposal) {
  return policy::demanded(*proposal.policy, parameters_of(proposal));
}

Json policy_entry(const Proposal& proposal) {
  if (proposal.parameters.empty()) return proposal.policy->name;
  Json parameters = Json::object();
  for (const auto& [name, value] : proposal.parameters) parameters[name] = value_json(value);
  return {{"name", proposal.policy->name}, {"parameters", std::move(parameters)}};
}

double violation(const TrialResult& result, const Limits& limits) {
  if (!result.done) return std::numeric_limits<double>::infinity();
  double sum = std::max(0.0, limits.keep - result.kept) / limits.keep;
  if (result.refused) sum += 1;
  if (result.overloaded) {
    const double served = result.offered_per_s > 0 ? result.requests_per_s / result.offered_per_s
                                                   : 0;
    return sum + 2 - std::min(1.0, served);
  }
  return sum + beyond(limits.p95, result.p95) + beyond(limits.slo.ttft, result.tokens.ttft) +
         beyond(limits.slo.tpot, result.tokens.tpot);
}

bool is_better(const TrialResult& left, const TrialResult& right, const Limits& limits,
               double slack) {
  const double left_beyond = violation(left, limits);
  const double right_beyond = violation(right, limits);
  const bool left_keeps = left_beyond <= slack;
  const bool right_keeps = right_beyond <= slack;
  if (left_keeps != right_keeps) return left_keeps;
  if (!left_keeps) return left_beyond < right_beyond;
  if (gain_step(left.gain) != gain_step(right.gain)) return left.gain > right.gain;
  if (kept_step(left.kept) != kept_step(right.kept)) return left.kept > right.kept;
  const Duration none = Duration::max();
  return left.p95.value_or(none) < right.p95.value_or(none);
}

void BestTrial::note(const Trial& trial, const TrialResult& found, const Limits& limits) {
  ++trials;
  if (!found.done || trial.proposal.policy->oracle) return;
  if (result && !is_better(found, *result, limits)) return;
  result = found;
  text = proposal_text(trial.proposal);
}

}  // namespace bubblesim::advise
