// The inside of inference_work.hpp and speculation.hpp: a decoder's iteration.
#pragma once

#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/inference_work.hpp"

namespace bubblesim::model {

/// What a new token sees of the other new tokens of its sequence.
enum class NewTokenMask : std::uint8_t {
  kCausal,  ///< those before it
  kTree,    ///< its ancestors; the kernel computes all pairs and masks (SpecInfer, section 4.2)
};

/// One iteration's batch.
struct DecoderBatch {
  std::vector<SequenceState> sequences;
  Logits logits = Logits::kLastToken;
  NewTokenMask mask = NewTokenMask::kCausal;
};

[[nodiscard]] Result<ModelWork> decoder_work(const ModelSpec& model, const Split& split,
                                             Precision precision, const DecoderBatch& batch);

}  // namespace bubblesim::model
