// Which layers each pipeline stage holds.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

/// Layers [first, last) of ModelWork::layers.
struct StageLayers {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

/// Splits a model into `stages` runs of layers. Transformers: as many blocks in each, what comes
/// before the blocks in the first, what comes after them in the last, as Megatron-LM does.
/// Others: so that the longest stage is as short as can be. `blocks_per_stage` overrides it (of
/// transformers: blocks; of others: layers). Fault: it does not divide, with the nearest that does.
[[nodiscard]] Result<std::vector<StageLayers>> split_layers(
    const TimedModel& model, std::uint32_t stages,
    const std::vector<std::uint32_t>& blocks_per_stage);

}  // namespace bubblesim::synth
