// Gradients, sharded parameters and the optimiser of a rank.
//
// PyTorch DDP: gradients fill buckets in the order of the backward pass, and a full bucket is
// reduced beside the rest of the pass. ZeRO-1: each replica gets its part of the reduced gradients,
// does its part of the optimiser step, and then gets the parameters of all replicas. ZeRO-2 keeps
// only its part of the gradients (rank_memory.hpp says when it scatters). ZeRO-3 and FSDP: a
// layer's parameters are gathered before each use, and its gradients scattered after each backward
// pass. ZeRO++: neighbours keep parts of the parameters gathered in a forward pass, and gather
// these for the backward pass; quantising kernels are left out.
//
// Three exchanges follow those of the replicas, all at once after the last backward pass: norms'
// weights among tensor ranks that split the sequence (Megatron-LM, finalize_model_grads.py), tied
// embeddings between first and last stage, and the two copies of each stage in DualPipe and
// Chimera.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/rank_memory.hpp"
#include "sim/synth/transfers.hpp"

namespace bubblesim::synth {

class GradientExchange {
 public:
  explicit GradientExchange(RankEmitter& emitter);

  /// To be called before layer `at` of a pass over `layers` (in the order of use). `pass`: forward
  /// or backward.
  void before_layer(const std::vector<std::uint32_t>& layers, std::size_t at, HostPass pass);
  /// To be called after a backward pass of the layer. `last`: whether this pass exchanges
  /// gradients.
  void after_backward(std::uint32_t layer, LastPass last);
  /// To be called after a backward pass of a whole stage.
  void end_pass(LastPass last);
  /// To be called after the last action: all gradients are reduced before the next kernel.
  void finish();
  /// Norm, optimiser kernels or the host's update, and the exchange of parameters.
  void step(std::uint32_t iteration, HostTransfers& host);

 private:
  /// Parameters with the same replicas: those of experts, or all others.
  struct Family {
    Channel channel = Channel::kData;
    Communicator replicas;
    double bucket = 0;       ///< elements in the unfinished bucket
    std::uint32_t sent = 0;  ///< buckets sent in this iteration
    double late = 0;         ///< elements exchanged after all backward passes
  };
  struct Launches {
    OpDraft kernel;
    std::uint32_t count = 0;
  };
  using Gathered = std::map<std::uint32_t, std::vector<std::uint32_t>>;  ///< by layer

  [[nodiscard]] double element_bytes() const;
  void gather(std::uint32_t layer, HostPass pass, Gathered& gathered);
  void add(Family& family, double elements);
  void flush(Family& family);
  void reduce(const Family& family, double elements);
  void reduce_split_norms();
  void reduce_tied_embeddings();
  void reduce_copies();
  void agree_on_norm();
  void prepare_optimizer();
  void gather_updated();
  void exchange_regions(std::uint32_t iteration);
  std::uint32_t call(Channel channel, network::CollectivePattern kind, double bytes,
                     const Communicator& communicator, std::string_view name,
                     std::uint16_t stream = kGradientStream);

  RankEmitter& emitter_;
  Scattering scatters_;
  Family shared_;
  Family experts_;
  std::map<Channel, std::uint64_t> uses_;
  std::array<Gathered, 2> gathered_;      ///< by lane, for its present pass
  std::uint32_t last_reduction_ = program::kNoIndex;  ///< all reductions are on one stream
  std::vector<Launches> optimizer_;
};

}  // namespace bubblesim::synth
