// How a server's model lies on its GPUs, and what the GPUs exchange in a step.
#pragma once

#include <cstdint>

#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::step_cost {

/// The link that every GPU of the server has to its neighbour, each direction.
struct ServerLink {
  BytesPerSecond bandwidth;
  Duration latency{};
};

struct ServerLayout {
  std::uint32_t tensor = 1;  ///< GPUs that share each layer
  std::uint32_t data = 1;    ///< members of a group, each with its own sequences and scheduler
  bool expert_parallel = false;  ///< the group's GPUs share the experts; else each member has all
  ServerLink link;           ///< where there are several GPUs

  /// GPUs among which experts are spread.
  [[nodiscard]] std::uint32_t expert_ranks() const {
    return expert_parallel ? tensor * data : 1;
  }
};

/// Microseconds of exchanges in a step of a member with `tokens` tokens and `sequences` sequences,
/// in a group whose members have `group_tokens` together. Rings, as in NCCL:
///   all-reduce over n: 2 (n-1)/n of the bytes over the link, and 2 (n-1) latencies;
///   all-gather and reduce-scatter: half of it;
/// but an all-reduce over two GPUs below model::kLeastRingBytes is one exchange: the bytes over the
/// link, and one latency.
/// With tensor > 1, activations (2 bytes) are all-reduced after the embedding, after attention and
/// after the feed-forward part of each block, and logits gathered (vLLM's RowParallelLinear,
/// VocabParallelEmbedding, LogitsProcessor). With experts over several GPUs, each mixture gathers
/// the tokens of all and reduces and scatters what comes of them (vLLM's default all2all_backend,
/// allgather_reducescatter); the tensor ranks of one of several members then gather its tokens.
[[nodiscard]] double exchange_us(const model::TransformerSpec& model, const ServerLayout& layout,
                                 double tokens, double group_tokens, double sequences);

}  // namespace bubblesim::step_cost
