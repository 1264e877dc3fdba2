// Gradients, sharded parameters and the optimiser of a rank.
//
// PyTorch DDP: gradients go into buckets in the order in which the backward pass makes them, and
// a bucket is reduced when it is full, beside the rest of the backward pass. ZeRO-1 and -2: each
// replica gets its part of the reduced gradients and, after its part of the optimiser step,
// everyone's parameters. ZeRO-3 and FSDP: a layer's parameters are gathered before each use, and
// its gradients scattered after each backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {

class GradientExchange {
 public:
  explicit GradientExchange(RankEmitter& emitter);

  /// Before layer `at` of a pass over `layers` (in the order of use) is computed.
  void before_layer(const std::vector<std::uint32_t>& layers, std::size_t at);
  /// After a backward pass of the layer.
  void after_backward(std::uint32_t layer);
  /// After the layer's last backward pass of the iteration.
  void layer_done(std::uint32_t layer);
  /// After the last action: all gradients are reduced before the next kernel.
  void finish();
  /// Norm, optimiser kernels, and parameters back to everyone.
  void step(std::uint32_t iteration);

 private:
  struct Bucket {
    double elements = 0;
    std::uint32_t sent = 0;
  };

  [[nodiscard]] bool shards_parameters() const;
  void gather(std::uint32_t layer);
  void add(double elements);
  void flush();
  void reduce(double bytes, Channel channel, const Communicator& with);
  void reduce_tied_embeddings();
  void agree_on_norm();
  void run_optimizer();
  void gather_updated();
  void exchange_regions(std::uint32_t iteration);
  std::uint32_t call(Channel channel, network::CollectiveKind kind, double bytes,
                     const Communicator& with, std::string_view name);

  RankEmitter& emitter_;
  Communicator replicas_;
  Communicator expert_replicas_;
  std::map<Channel, std::uint64_t> uses_;
  std::map<std::uint32_t, std::uint32_t> gathered_;  ///< by layer: of the present pass
  std::vector<std::uint32_t> reductions_;            ///< to be waited for
  Bucket bucket_;
  double late_elements_ = 0;     ///< kAfterBackward: all of them
  double expert_elements_ = 0;
};

}  // namespace bubblesim::synth
