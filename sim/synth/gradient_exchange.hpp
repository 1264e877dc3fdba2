// Gradients, sharded parameters and the optimiser of a rank.
//
// PyTorch DDP: gradients go into buckets in the order in which the backward pass makes them, and
// a bucket is reduced when it is full, beside the rest of the backward pass. ZeRO-1: each replica
// gets its part of the reduced gradients and, after its part of the optimiser step, the parameters
// of all replicas. ZeRO-2 keeps only its part of the gradients (rank_memory.hpp says when it
// scatters). ZeRO-3 and FSDP: a layer's parameters are gathered before each use, and its gradients
// scattered after each backward pass. ZeRO++: neighbours keep parts of the parameters that a
// forward pass has gathered, and gather these for the backward pass; kernels that quantise are left
// out.
//
// Gradients that are exchanged after those of the replicas: norms' weights among tensor ranks that
// split the sequence (Megatron-LM, finalize_model_grads.py), tied embeddings between first and last
// stage, and the two copies of each stage in DualPipe and Chimera, at once when all backward passes
// have ended.
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

  /// Before layer `at` of a pass over `layers` (in the order of use) is computed. `pass`: forward
  /// or backward.
  void before_layer(const std::vector<std::uint32_t>& layers, std::size_t at, HostPass pass);
  /// After a backward pass of the layer. `last`: whether this pass exchanges gradients.
  void after_backward(std::uint32_t layer, LastPass last);
  /// After a backward pass of a whole stage.
  void end_pass(LastPass last);
  /// After the last action: all gradients are reduced before the next kernel.
  void finish();
  /// Norm, optimiser kernels or the host's update, and parameters back to everyone.
  void step(std::uint32_t iteration, HostTransfers& host);

 private:
  /// Parameters with the same replicas: of experts, and all others.
  struct Family {
    Channel channel = Channel::kData;
    Communicator replicas;
    double bucket = 0;       ///< elements in the bucket that is being filled
    std::uint32_t sent = 0;  ///< buckets of this iteration
    double late = 0;         ///< elements that wait for the end of all backward passes
  };
  struct Launches {
    PreparedKernel kernel;
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
                     const Communicator& communicator, std::string_view name);

  RankEmitter& emitter_;
  Scattering scatters_;
  Family shared_;
  Family experts_;
  std::map<Channel, std::uint64_t> uses_;
  std::array<Gathered, 2> gathered_;      ///< by lane, of the lane's present pass
  std::uint32_t last_reduction_ = program::kNoIndex;  ///< all reductions are on one stream
  std::vector<Launches> optimizer_;
};

}  // namespace bubblesim::synth
