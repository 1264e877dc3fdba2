// Layer times in the JSON that the Python module bubblesim.layers writes.
#pragma once

#include "sim/base/json.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost::test {

inline Json curve_json(const TimeCurve& curve) {
  return {{"at", curve.axis()}, {"us", curve.microseconds()}};
}

inline Json grid_json(const TimeGrid& grid, std::initializer_list<const char*> names) {
  Json out = Json::object();
  std::size_t i = 0;
  for (const char* name : names) out[name] = grid.axes()[i++];
  out["us"] = grid.microseconds();
  return out;
}

inline Json experts_json(const ExpertTable& experts) {
  Json out = Json::array();
  for (std::size_t i = 0; i < experts.tokens.size(); ++i) {
    Json row = {{"tokens", experts.tokens[i]}};
    row.update(curve_json(experts.by_busy_experts[i]));
    out.push_back(std::move(row));
  }
  return out;
}

inline Json rank_json(const RankTables& rank) {
  Json dense = Json::object();
  for (const auto& [name, curve] : rank.dense) dense[name] = curve_json(curve);
  Json out = {{"tensor", rank.tensor},
              {"dense", std::move(dense)},
              {"lm_head", curve_json(rank.lm_head)},
              {"sampler", curve_json(rank.sampler)},
              {"decode", grid_json(rank.decode, {"sequences", "cached"})},
              {"prefill", grid_json(rank.prefill, {"chunk", "before"})}};
  if (!rank.mixed.empty()) {
    out["mixed"] = grid_json(rank.mixed, {"chunk", "before", "sequences", "cached"});
  }
  if (rank.experts) out["experts"] = experts_json(*rank.experts);
  return out;
}

inline Json layers_json(const LayerTables& tables) {
  Json ranks = Json::array();
  for (const RankTables& rank : tables.ranks) ranks.push_back(rank_json(rank));
  return {{"format", "bubblesim.layers/1"}, {"gpu", tables.gpu},
          {"model", tables.model},          {"engine", tables.engine},
          {"source", tables.source},        {"ranks", std::move(ranks)}};
}

}  // namespace bubblesim::step_cost::test
