// The inside of the work functions: what a transformer's block measures on one GPU under a split,
// and the faults of splits that do not divide it.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

enum class Pass : std::uint8_t {
  kTraining,
  kRequest,  ///< forward only, without dropout and loss
};

/// Sizes of one GPU. The spec must outlive it.
struct TransformerShape {
  const TransformerSpec* spec = nullptr;
  Split split;
  TrainingShape run;
  Pass pass = Pass::kTraining;
  double element = 2.0;              ///< bytes of an activation
  std::uint64_t batch = 1;           ///< samples
  std::uint64_t sequence = 0;        ///< tokens of a sample on this GPU: split by context
  std::uint64_t tokens = 0;          ///< batch x sequence
  std::uint64_t split_tokens = 0;    ///< of norms and dropouts: fewer with sequence parallel
  std::uint64_t gathered_tokens = 0; ///< IterationSums::group_tokens
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t query_columns = 0;   ///< heads x head size
  std::uint64_t kv_columns = 0;      ///< of keys; of values as many
  std::uint64_t ffn = 0;             ///< inner width here; of one expert where there are any
  std::uint64_t vocabulary = 0;      ///< rows here, padded
  bool dropout = false;

  [[nodiscard]] bool splits_tensor() const { return split.tensor > 1; }
  [[nodiscard]] bool splits_sequence() const { return splits_tensor() && split.sequence_parallel; }
  [[nodiscard]] std::uint64_t hidden() const { return spec->hidden; }
  /// tokens x hidden, and the part of it in norms and dropouts.
  [[nodiscard]] double stream() const;
  [[nodiscard]] double split_stream() const;
  /// gathered_tokens x hidden; 0: they are not gathered.
  [[nodiscard]] double gathered_stream() const;
  /// Elements of unfused attention scores.
  [[nodiscard]] double scores() const;
};

/// Rows of the embedding when split: a multiple of 128 x tensor, as Megatron-LM pads
/// (--make-vocab-size-divisible-by 128); as published when not split.
[[nodiscard]] std::uint64_t padded_vocabulary(std::uint64_t rows, std::uint32_t tensor);

/// A split that does not divide heads, inner width, experts or tokens is a fault that names the
/// nearest that does; so is unfused attention with context parallel, which rings chunks of keys
/// and values past a fused kernel.
[[nodiscard]] Result<TransformerShape> transformer_shape(const TransformerSpec& spec,
                                                         const Split& split,
                                                         const TrainingShape& run, Pass pass);

/// Only the part of the checks that does not depend on tokens: heads, widths, experts.
[[nodiscard]] Result<Split> check_split(const TransformerSpec& spec, const Split& split);

}  // namespace bubblesim::model
