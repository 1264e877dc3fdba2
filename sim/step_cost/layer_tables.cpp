#include "sim/step_cost/layer_tables.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <variant>

namespace bubblesim::step_cost {
namespace {

using NamedCalls = std::pair<std::string_view, LayerCalls>;

// vLLM's decoder layers normalise before attention and before the feed-forward part; Qwen3's
// attention normalises queries and keys, each by a call.
constexpr std::array<NamedCalls, 10> kDenseLayers = {{{"embedding", {0, 1}},
                                                      {"layernorm", {2, 0}},
                                                      {"qkv_proj", {1, 0}},
                                                      {"qk_norm", {2, 0}},
                                                      {"rotary_emb", {1, 0}},
                                                      {"o_proj", {1, 0}},
                                                      {"gate_up_proj", {1, 0}},
                                                      {"act_fn", {1, 0}},
                                                      {"down_proj", {1, 0}},
                                                      {"final_layernorm", {0, 1}}}};

constexpr std::array<std::string_view, 6> kAlways = {"embedding", "layernorm", "qkv_proj",
                                                     "rotary_emb", "o_proj", "final_layernorm"};
constexpr std::array<std::string_view, 3> kFeedForward = {"gate_up_proj", "act_fn", "down_proj"};

bool is_sound(const Axis& axis, const std::vector<double>& times) {
  return !axis.empty() &&
         std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>{}) == axis.end() &&
         std::all_of(times.begin(), times.end(), [](double time) { return time > 0; });
}

bool is_sound(const TimeGrid& grid) {
  return !grid.empty() && std::all_of(grid.axes().begin(), grid.axes().end(),
                                      [&](const Axis& axis) {
                                        return is_sound(axis, grid.microseconds());
                                      });
}

std::string unsound_part(const RankTables& rank) {
  for (const auto& [name, curve] : rank.dense) {
    if (!is_sound(curve.axis(), curve.microseconds())) return name;
  }
  if (!is_sound(rank.lm_head.axis(), rank.lm_head.microseconds())) return "lm_head";
  if (!is_sound(rank.sampler.axis(), rank.sampler.microseconds())) return "sampler";
  for (const TimeGrid* grid : {&rank.decode, &rank.prefill}) {
    if (!is_sound(*grid)) return "attention";
  }
  const bool has_one_sequence = rank.decode.axes()[0].back() <= 1;
  if (!is_sound(rank.mixed) && !(rank.mixed.empty() && has_one_sequence)) return "attention";
  if (!rank.experts) return {};
  if (!is_sound(rank.experts->tokens, {})) return "moe";
  for (const TimeCurve& curve : rank.experts->by_busy_experts) {
    if (!is_sound(curve.axis(), curve.microseconds())) return "moe";
  }
  return {};
}

std::string missing_layer(const RankTables& rank) {
  for (const std::string_view name : kAlways) {
    if (!rank.dense.contains(name)) return std::string(name);
  }
  for (const std::string_view name : kFeedForward) {
    if (!rank.experts && !rank.dense.contains(name)) return std::string(name);
  }
  return {};
}

}  // namespace

std::optional<LayerCalls> dense_calls_of(std::string_view layer) {
  for (const auto& [name, calls] : kDenseLayers) {
    if (name == layer) return calls;
  }
  return std::nullopt;
}

std::vector<std::string> dense_layer_names() {
  std::vector<std::string> names;
  for (const auto& [name, calls] : kDenseLayers) names.emplace_back(name);
  return names;
}

double ExpertTable::interpolated(double tokens_here, double busy, Beyond& beyond) const {
  // Few tokens cannot keep many experts busy, so each row of the profile ends where it must.
  const auto of_row = [&](std::size_t row) {
    const TimeCurve& curve = by_busy_experts[row];
    return curve.interpolated(std::min(busy, curve.axis().back()), beyond);
  };
  const Bracket at = bracket(tokens, tokens_here, beyond);
  const double low = of_row(at.low);
  return at.share == 0 ? low : at.interpolated(low, of_row(at.high));
}

Result<const RankTables*> LayerTables::of_tensor(std::uint32_t tensor) const {
  std::string known;
  for (const RankTables& rank : ranks) {
    if (rank.tensor == tensor) return &rank;
    known += (known.empty() ? "" : ", ") + std::to_string(rank.tensor);
  }
  return fail("no layer times of " + model + " on " + std::to_string(tensor) +
              " GPUs that share each layer; profiled: " + known);
}

Result<const RankTables*> tables_for(const LayerTables& tables, const model::ModelSpec& model,
                                     std::uint32_t tensor) {
  const auto& names = model.published_as;
  if (!names.empty() && std::ranges::find(names, tables.model) == names.end()) {
    std::string found;
    for (const std::string& name : names) found += (found.empty() ? "'" : ", '") + name + "'";
    return fail("found the model " + found + "; the layer times are of '" + tables.model + "'");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const RankTables* const rank, tables.of_tensor(tensor));
  const auto* network = std::get_if<model::TransformerSpec>(&model.network);
  const bool has_experts = network != nullptr && network->mixture.has_value();
  if (has_experts == rank->experts.has_value()) return rank;
  return fail(has_experts ? "the layer times have none of experts, and the model has experts; "
                            "expected the tables of that model"
                          : "the layer times have some of experts, and the model has none; "
                            "expected the tables of that model");
}

void count_tables(const LayerTables& tables, const model::ModelSpec& model,
                  std::string_view gpu, CounterSet& counters) {
  if (tables.gpu != gpu) counters.add(kLayersOfOtherGpu);
  if (model.published_as.empty()) counters.add(kLayersOfUnknownModel);
}

Result<void> check(const LayerTables& tables, const std::string& file) {
  for (const RankTables& rank : tables.ranks) {
    const std::string place = "tp" + std::to_string(rank.tensor);
    if (const std::string name = missing_layer(rank); !name.empty()) {
      return fail(file, place, "no times of the layer '" + name + "'");
    }
    if (const std::string name = unsound_part(rank); !name.empty()) {
      return fail(file, place, "the times of '" + name +
                                   "' are none or not all positive, or its points do not ascend");
    }
  }
  return {};
}

}  // namespace bubblesim::step_cost
