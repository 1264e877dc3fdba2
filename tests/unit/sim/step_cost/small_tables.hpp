// Layer times of a model so small that a step's time can be added up by hand.
#pragma once

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

}  // namespace bubblesim::step_cost::test
