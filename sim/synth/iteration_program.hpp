// The iterations of a continuously batched language model as one program: a thread for each kind of
// iteration (sim/workload/continuous_service.hpp), launched as inference_program.hpp says.
//
// Buckets: prompts of 16, 32, ... 256 tokens, then every 256; sequences of 1, 2, 4, ...; contexts
// of 256 tokens. An iteration takes the time of the largest prompt and number of sequences of its
// bucket (a server that replays CUDA graphs pads to them too) and of the middle of its contexts.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/result.hpp"
#include "sim/program/program.hpp"
#include "sim/synth/inference_memory.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/workload/continuous_service.hpp"

namespace bubblesim::synth {

struct IterationProgram {
  program::Program program;
  workload::IterationTable table;
  InstanceMemory memory;
};

/// `request` generates without speculation; its batch is the most sequences that run at once, its
/// prompt and output the length of every request. Prompts of at most kPromptBatch tokens together
/// share an iteration (more if one alone has more). `kv_cache`: bytes for keys and values; nothing:
/// as the whole batch needs. Faults: as inference_program; a cache too small for one request.
[[nodiscard]] Result<IterationProgram> iteration_program(const InferenceRequest& request,
                                                         std::optional<double> kv_cache = {});

/// vLLM's default limit of tokens in an iteration, max_num_batched_tokens (version 0.2 to 0.5).
inline constexpr std::uint64_t kPromptBatch = 2048;

}  // namespace bubblesim::synth
