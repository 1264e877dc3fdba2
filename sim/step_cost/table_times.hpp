// Kernel times from layer tables.
//
// A step's kernels are those of its layers: dense ones by the batch's padded tokens, at the next
// profiled size (TimeCurve::at_least), the head and the sampler interpolated between profiled
// counts of sequences, attention by AttentionTime.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/model/model_spec.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {

// The time of attention over a batch of sequences of different lengths, from a profile of batches
// of equal lengths.
//
//  * Decoding: the profiled time at the mean length, plus an addition for the longest sequences. A
//    thread block walks the keys of one sequence and head alone, at `alone_us` a token; together, j
//    sequences share the memory's bandwidth, `shared_us` a token each. While only the j longest are
//    left, blocks are idle if j x shared_us < alone_us, so with lengths k1 >= k2 >= ... they add
//        sum over j of (kj - kj+1) x max(0, alone_us - j x shared_us)
//    beyond what a batch of equal lengths would lose. Both rates are slopes of the profile itself:
//    alone_us of its smallest chunk over long prefixes, shared_us of the batch at hand.
//    tests/validation/serving compares with the profiler's own measured mixtures of lengths.
//  * If a batch alone would not fill the GPU, FlashAttention splits a sequence's keys over
//    several blocks (its num_splits_heuristic: below 0.8 of two blocks an SM), and nothing is idle.
//    A captured graph decides by the sequences that it was captured for.
//  * Prompts beside decoding sequences: the profiled time of one chunk with as many tokens and
//    pairs of query and key, and the mean length; plus the same addition. Kernels of mixed batches
//    never split. A profile of one sequence has no such batch: there it is the sum of both, counted
//    as beyond the tables.
//  * Several short prompts have fewer pairs than one chunk of as many tokens without a prefix; the
//    difference of their profiled times is taken off.

class AttentionTime {
 public:
  /// `tables` outlives this. `kv_heads`: on one GPU.
  AttentionTime(const RankTables& tables, std::uint32_t kv_heads, std::uint32_t sm_count);

  /// Microseconds in one layer.
  [[nodiscard]] double layer_us(const Batch& batch, Beyond& beyond) const;

 private:
  /// A batch of sequences of equal lengths.
  struct Equal {
    double us = 0;
    double shared_us = 0;  ///< slope: time of a further token of every sequence / sequences
  };
  struct Lengths {
    double mean = 0;
    std::uint32_t count = 0;
  };

  template <class TimeAt>
  [[nodiscard]] Equal equal_lengths(Lengths lengths, TimeAt time_at) const;
  [[nodiscard]] double uneven_us(const Batch& batch, Lengths lengths, double shared_us) const;
  [[nodiscard]] bool splits_keys(const Batch& batch) const;
  [[nodiscard]] double decode_us(const Batch& batch, Beyond& beyond) const;
  [[nodiscard]] double with_prompts_us(const Batch& batch, Beyond& beyond) const;

  const RankTables& tables_;
  std::uint32_t kv_heads_;
  std::uint32_t sm_count_;
  double alone_us_;
};

inline constexpr CounterSpec kBeyondLayerTables{
    "beyond_layer_tables", Severity::kNotice,
    "lookups above the last profiled point of an axis; times go on along the last two points"};

class TableTimes final : public KernelTimes {
 public:
  /// All references outlive this.
  TableTimes(const RankTables& tables, const model::TransformerSpec& model,
             const ServerLayout& layout, std::uint32_t sm_count);

  [[nodiscard]] double batch_us(const Batch& batch) override;
  [[nodiscard]] double experts_us(double group_tokens) override;
  void add_counters(CounterSet& counters) const override;

 private:
  [[nodiscard]] double dense_us(std::uint32_t tokens);

  const RankTables& tables_;
  const model::TransformerSpec& model_;
  const ServerLayout& layout_;
  AttentionTime attention_;
  std::vector<std::optional<double>> dense_us_;  ///< by tokens; only those computed so far
  Beyond beyond_;
};

}  // namespace bubblesim::step_cost
