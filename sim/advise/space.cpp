#include "sim/advise/space.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::advise {
namespace {

using policy::ParameterSpec;
using policy::Value;

constexpr std::size_t kMostCombinations = 64;
// Starts far from the defaults: numbers so many times larger and smaller, of policies with so many
// parameters at most. Those with more are controllers whose constants belong together.
constexpr double kFarFactor = 8;
constexpr std::size_t kMostScaled = 14;
// Where a number that is 0 goes.
constexpr double kFirstNumber = 0.1;
constexpr Duration kFirstSpan = std::chrono::microseconds(100);

/// Six significant digits: equal settings have equal texts on every machine.
std::string number_text(double number) { return fmt::format("{:.6g}", number); }

double number_of(const std::string& text) { return parse_number<double>(text).value_or(0); }

template <class T>
std::vector<Value> scaled(T value, T minimum, T maximum, T first, double factor) {
  std::vector<Value> values;
  const auto number = [](T from) {
    if constexpr (std::is_same_v<T, Duration>) return static_cast<double>(from.count());
    else return static_cast<double>(from);
  };
  const auto add = [&](double wanted) {
    wanted = std::clamp(number_of(number_text(wanted)), number(minimum), number(maximum));
    T to{};
    if constexpr (std::is_same_v<T, double>) to = wanted;
    else to = T{std::llround(wanted)};
    const bool fresh = to != value && std::ranges::find(values, Value(to)) == values.end();
    if (fresh) values.emplace_back(to);
  };
  if (value == T{}) {
    add(number(first));
    return values;
  }
  add(number(value) * factor);
  add(number(value) / factor);
  return values;
}

/// Numbers larger and smaller by the factor.
std::vector<Value> scaled_values(const ParameterSpec& spec, const Value& value, double factor) {
  const Value& type = policy::type_value(spec);
  if (std::holds_alternative<std::string>(value) || type.index() != value.index()) return {};
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return scaled(*whole, std::get<std::int64_t>(spec.minimum),
                  std::get<std::int64_t>(spec.maximum), std::int64_t{1}, factor);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return scaled(*number, std::get<double>(spec.minimum), std::get<double>(spec.maximum),
                  kFirstNumber, factor);
  }
  if (const auto* span = std::get_if<Duration>(&value)) {
    return scaled(*span, std::get<Duration>(spec.minimum), std::get<Duration>(spec.maximum),
                  kFirstSpan, factor);
  }
  return {};
}

std::vector<Value> other_words(const ParameterSpec& spec, const Value& value) {
  std::vector<Value> values;
  if (const auto* flag = std::get_if<bool>(&value)) values.emplace_back(!*flag);
  for (const std::string& word : spec.choices) {
    if (value != Value(word)) values.emplace_back(word);
  }
  return values;
}

bool is_searched(const policy::PolicySpec& spec, const ParameterSpec& parameter) {
  return std::ranges::find(spec.not_searched, parameter.name) == spec.not_searched.end();
}

Value value_of(const Proposal& proposal, const ParameterSpec& spec) {
  const auto found = proposal.parameters.find(spec.name);
  return found == proposal.parameters.end() ? spec.fallback : found->second;
}

Proposal with_value(Proposal proposal, const ParameterSpec& spec, const Value& value) {
  if (value == spec.fallback) {
    proposal.parameters.erase(spec.name);
  } else {
    proposal.parameters[spec.name] = value;
  }
  return proposal;
}

std::vector<std::string> other_values(const PlaceRange& place, const std::string& value,
                                      double factor) {
  std::vector<std::string> values;
  if (place.range) {
    const auto [low, high] = *place.range;
    const double number = number_of(value);
    for (const double wanted : {number * factor, number / factor}) {
      const std::string text = number_text(std::clamp(wanted, low, high));
      if (text != value) values.push_back(text);
    }
    return values;
  }
  const auto at = std::ranges::find(place.values, value);
  if (at == place.values.end()) return values;
  if (at != place.values.begin()) values.push_back(*(at - 1));
  if (at + 1 != place.values.end()) values.push_back(*(at + 1));
  return values;
}

std::vector<Proposal> place_steps(const PlaceRange& place, const Proposal& from, double factor) {
  std::vector<Proposal> steps;
  const auto at = from.places.find(place.pointer);
  const bool is_base = at == from.places.end();
  for (const std::string& value : is_base ? std::vector{place.values.front()}
                                          : other_values(place, at->second, factor)) {
    steps.push_back(from);
    steps.back().places[place.pointer] = value;
  }
  if (!is_base && place.begins_at_base && at->second == place.values.front()) {
    steps.push_back(from);
    steps.back().places.erase(place.pointer);
  }
  return steps;
}

bool wanted(const std::vector<std::string>& only, const std::string& dimension) {
  return only.empty() || std::ranges::find(only, dimension) != only.end();
}

}  // namespace

Space::Space(const policy::Registry& registry, SystemChoice system, std::vector<PlaceRange> places)
    : registry_(registry), system_(std::move(system)), places_(std::move(places)) {}

// What every system can do, it may always be advised to do.
bool Space::is_tried(const std::string& policy) const {
  return system_.policies.empty() || policy == "exclusive" ||
         std::ranges::find(system_.policies, policy) != system_.policies.end();
}

std::vector<std::map<std::string, std::string>> Space::combinations() const {
  std::size_t all = 1;
  for (const PlaceRange& place : places_) all *= place.begins_at_base ? 1 : place.values.size();
  const std::size_t count = std::min(all, kMostCombinations);
  std::vector<std::map<std::string, std::string>> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i * all / count;
    auto& combination = out.emplace_back();
    for (const PlaceRange& place : places_) {
      if (place.begins_at_base) continue;
      combination[place.pointer] = place.values[rest % place.values.size()];
      rest /= place.values.size();
    }
  }
  return out;
}

void Space::add_others(const Proposal& at, std::vector<Proposal>& starts) const {
  const auto& parameters = at.policy->parameters;
  const bool few = parameters.size() <= kMostScaled;
  const auto add = [&](const ParameterSpec& parameter, const std::vector<Value>& values) {
    for (const Value& value : values) {
      Proposal other = with_value(at, parameter, value);
      if (is_available(other)) starts.push_back(std::move(other));
    }
  };
  for (const ParameterSpec& parameter : parameters) {
    if (!is_searched(*at.policy, parameter)) continue;
    add(parameter, other_words(parameter, parameter.fallback));
    if (few) add(parameter, scaled_values(parameter, parameter.fallback, kFarFactor));
  }
}

std::vector<Proposal> Space::starts() const {
  std::vector<Proposal> starts;
  const auto at = combinations();
  for (const policy::PolicySpec& spec : registry_.all()) {
    if (!spec.oracle && !is_tried(spec.name)) continue;
    for (const auto& places : at) starts.push_back({&spec, {}, places});
    if (!spec.oracle) add_others({&spec, {}, at[at.size() / 2]}, starts);
  }
  return starts;
}

std::vector<SpaceStep> Space::steps(const Proposal& from, double factor,
                                    const std::vector<std::string>& only) const {
  std::vector<SpaceStep> steps;
  const auto add = [&](const std::string& dimension, Proposal to) {
    if (is_available(to) == is_available(from)) steps.push_back({dimension, std::move(to)});
  };
  for (const PlaceRange& place : places_) {
    if (!wanted(only, place.pointer)) continue;
    for (Proposal& to : place_steps(place, from, factor)) add(place.pointer, std::move(to));
  }
  if (from.policy->oracle) return steps;
  for (const ParameterSpec& parameter : from.policy->parameters) {
    if (!wanted(only, parameter.name) || !is_searched(*from.policy, parameter)) continue;
    const Value value = value_of(from, parameter);
    for (const Value& word : other_words(parameter, value)) {
      add(parameter.name, with_value(from, parameter, word));
    }
    for (const Value& number : scaled_values(parameter, value, factor)) {
      add(parameter.name, with_value(from, parameter, number));
    }
  }
  return steps;
}

std::vector<policy::SystemFeature> Space::lacking(const Proposal& proposal) const {
  std::vector<policy::SystemFeature> lacking = demanded(proposal);
  std::erase_if(lacking, [this](policy::SystemFeature feature) { return system_.has(feature); });
  return lacking;
}

bool Space::is_available(const Proposal& proposal) const {
  return !proposal.policy->oracle && lacking(proposal).empty() && is_tried(proposal.policy->name);
}

Proposal Space::with_load(const Proposal& proposal, double factor) const {
  Proposal scaled = proposal;
  for (const PlaceRange& place : places_) {
    if (!place.range) continue;
    std::string& value = scaled.places[place.pointer];
    const auto [low, high] = *place.range;
    value = number_text(std::clamp(number_of(value) * factor, low, high));
  }
  return scaled;
}

namespace {

// Where searches of a load begin and how far they go, of what the service's own GPUs could serve.
constexpr double kFirstLoads[] = {0.05, 0.15, 0.4, 0.8};
constexpr std::pair<double, double> kLoadRange{0.002, 1.2};
constexpr std::uint32_t kBatchStep = 4;
// GPUs differ if their bubbles do by so much of the time.
constexpr double kGpusDiffer = 0.05;

PlaceRange load_range(const std::string& pointer, double all, std::optional<double> share) {
  if (share) return {pointer, {number_text(*share * all)}};
  PlaceRange place{pointer, {}, std::pair(kLoadRange.first * all, kLoadRange.second * all)};
  for (const double load : kFirstLoads) place.values.push_back(number_text(load * all));
  return place;
}

std::vector<std::string> batch_sizes(std::uint32_t given) {
  std::vector<std::string> values;
  if (given / kBatchStep > 0) values.push_back(std::to_string(given / kBatchStep));
  values.push_back(std::to_string(given));
  values.push_back(std::to_string(given * kBatchStep));
  return values;
}

/// The GPUs with the most idle time, in halves; none where GPUs are alike.
std::vector<std::string> idlest_gpus(const std::vector<double>& bubbles) {
  std::vector<std::string> values;
  if (bubbles.size() < 2) return values;
  const auto [least, most] = std::ranges::minmax(bubbles);
  if (most - least < kGpusDiffer) return values;
  std::vector<std::uint32_t> order(bubbles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return bubbles[a] > bubbles[b]; });
  for (std::size_t count = order.size() / 2; count > 0; count /= 2) {
    order.resize(count);
    std::vector<std::uint32_t> chosen = order;
    std::ranges::sort(chosen);
    values.push_back(Json(chosen).dump());
  }
  return values;
}

// The GPUs of a server over several are no free choice.
bool may_choose_gpus(const Json& filler) {
  return !filler.contains("instances") && !filler.contains("jobs") &&
         sweep::find_value(filler, "/program/engine/tensor_parallel") == nullptr &&
         sweep::find_value(filler, "/program/engine/data_parallel") == nullptr &&
         (!filler.contains("gpus") || filler["gpus"] == "all");
}

void add_filler(const Question& question, const Json& filler, std::size_t number,
                const PartsAlone& alone, std::vector<PlaceRange>& places) {
  const std::string place = "/fillers/" + std::to_string(number);
  const bool searched = question.load == Load::kSearched || question.load_share;
  if (searched && sweep::find_value(filler, "/arrivals/rate_per_s") != nullptr) {
    const double all = alone.fillers[number].requests_per_s *
                       static_cast<double>(alone.filler_gpus[number]);
    places.push_back(load_range(place + "/arrivals/rate_per_s", all, question.load_share));
  }
  if (const Json* batch = sweep::find_value(filler, "/program/batch"); batch != nullptr) {
    places.push_back({place + "/program/batch", batch_sizes(batch->get<std::uint32_t>())});
  }
  if (std::vector<std::string> gpus = idlest_gpus(alone.gpu_bubbles);
      !gpus.empty() && may_choose_gpus(filler)) {
    places.push_back({place + "/gpus", std::move(gpus), std::nullopt, true});
  }
}

}  // namespace

std::vector<PlaceRange> searched_places(const Question& question, const Json& base,
                                        const PartsAlone& alone) {
  std::vector<PlaceRange> places;
  const Json* fillers = sweep::find_value(base, "/fillers");
  for (std::size_t i = 0; fillers != nullptr && i < fillers->size(); ++i) {
    add_filler(question, (*fillers)[i], i, alone, places);
  }
  for (const sweep::SweepAxis& axis : question.axes) {
    const std::string pointer = sweep::numbered(base, axis.pointer);
    std::erase_if(places, [&](const PlaceRange& own) {
      return own.pointer == pointer || own.pointer.starts_with(pointer + '/');
    });
    places.push_back({axis.pointer, axis.values});
  }
  return places;
}

namespace {

constexpr double kEqualGain = 0.003;  // a share of the gain
constexpr double kEqualKept = 0.001;

Json value_json(const policy::Value& value) {
  const auto to_json = [](const auto& held) -> Json {
    if constexpr (std::is_same_v<decltype(held), const Duration&>) return format_duration(held);
    else return held;
  };
  return std::visit(to_json, value);
}

// Whole steps of a logarithmic scale, so that "equal" is transitive.
double gain_step(double gain) {
  if (gain <= 1e-6) return -std::numeric_limits<double>::infinity();
  return std::floor(std::log(gain) / std::log1p(kEqualGain));
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

std::array<LimitedLatency, 3> latencies_of(const TrialResult& result, const Limits& limits) {
  return {{{"p95", "p95", limits.p95, result.p95},
           {"ttft", "p95 to the first token", limits.slo.ttft, result.tokens.ttft},
           {"tpot", "p95 of time a token", limits.slo.tpot, result.tokens.tpot}}};
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
  for (const LimitedLatency& latency : latencies_of(result, limits)) {
    if (latency.is_broken()) sum += to_seconds(*latency.found) / to_seconds(*latency.limit) - 1;
  }
  return sum;
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
