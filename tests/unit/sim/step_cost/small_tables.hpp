// Layer times of a model so small that a step's time can be added up by hand, and layer times in
// the JSON that the Python module bubblesim.layers writes.
#pragma once

#include "sim/base/json.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost::test {

/// Each call of a dense layer: 1 us up to 8 tokens, 2 us up to 16. Head: 10 us + 1 us a sequence;
/// sampler: 5 us. Attention: see each grid.
inline RankTables small_tables() {
  RankTables tables;
  for (const std::string& name : dense_layer_names()) {
    if (name != "qk_norm") tables.dense.emplace(name, TimeCurve({8, 16}, {1, 2}));
  }
  tables.lm_head = TimeCurve({0, 10}, {10, 20});
  tables.sampler = TimeCurve({1}, {5});
  // 4 us plus 0.01 us a token of each sequence.
  tables.decode = TimeGrid({{1, 8}, {0, 1000}}, {4, 14, 4, 84});
  // 3 us for a chunk of 16, 6 us for one of 32, plus 0.1 us a token of its prefix.
  tables.prefill = TimeGrid({{16, 32}, {0, 1000}}, {3, 103, 6, 106});
  // The sum of decode and prefill, less 1 us.
  tables.mixed = TimeGrid({{16, 32}, {0, 1000}, {1, 8}, {0, 1000}},
                          {6, 16, 6, 86, 106, 116, 106, 186, 9, 19, 9, 89, 109, 119, 109, 189});
  return tables;
}

/// 2 blocks.
inline model::TransformerSpec small_model() {
  model::TransformerSpec model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = model.kv_heads = 4;
  model.head_size = 16;
  model.ffn = 128;
  model.vocabulary = 1000;
  model.max_sequence = 4096;
  return model;
}

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
