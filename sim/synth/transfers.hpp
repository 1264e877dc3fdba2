// A rank's transfers: to and from other stages of its pipeline, and between its GPU and host
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {

// Transfers of a rank from and to other stages of the pipeline.
//
// Each direction of each edge between stages has a stream of its own at both ends, and
// micro-batches travel in the sender's order; before it can receive a later one, a receiver posts
// the earlier receives. Tensor ranks may send a share each, which the receivers then gather among
// themselves (SoftwareSpec::pipeline_tensors).

class StageTransfers {
 public:
  explicit StageTransfers(RankEmitter& emitter);

  /// To be called before the actions of an iteration, with none of its micro-batches received.
  void begin_iteration(std::uint32_t iteration);

  /// To be called before a forward: receives activations of all producers; the next kernel waits
  /// for them.
  void receive_inputs(std::uint32_t stage, std::uint32_t micro_batch);
  /// To be called before a backward: receives gradients of all consumers.
  void receive_gradients(std::uint32_t stage, std::uint32_t micro_batch);
  /// To be called after a forward (outputs), or after the input-gradient half of a backward.
  void send_outputs(std::uint32_t stage, std::uint32_t micro_batch);
  void send_gradients(std::uint32_t stage, std::uint32_t micro_batch);

 private:
  /// One direction of an edge.
  struct Route {
    std::uint32_t from = 0;   ///< stages
    std::uint32_t to = 0;
    Channel channel = Channel::kForwardTransfer;
    friend auto operator<=>(const Route&, const Route&) = default;
  };
  struct End {
    std::uint16_t stream = 0;
    std::vector<std::uint32_t> order;           ///< micro-batches in the sender's order
    std::size_t posted = 0;                     ///< receives of the present iteration so far
    std::map<std::uint32_t, std::uint32_t> operations;  ///< its receives, by micro-batch
  };

  void receive(const Route& route, std::uint32_t stage, std::uint32_t micro_batch);
  void send(const Route& route, std::uint32_t micro_batch);
  void gather_shares(const Route& route, const End& end, std::uint32_t micro_batch);
  [[nodiscard]] bool scatters() const;
  std::uint32_t post(const Route& route, End& end, std::uint32_t micro_batch);
  [[nodiscard]] double bytes_of(const Route& route) const;
  [[nodiscard]] bool is_local(const Route& route) const;
  [[nodiscard]] std::vector<std::uint32_t> sending_order(const Route& route) const;
  End& end_of(const Route& route);
  [[nodiscard]] CollectiveCall call_of(const Route& route, const End& end,
                                       std::uint32_t micro_batch) const;

  RankEmitter& emitter_;
  std::map<Route, End> ends_;
  std::uint32_t iteration_ = 0;  ///< the present one
};

// Transfers of a rank between its GPU and host memory, or NVMe and CXL memory behind it
// (PlanSpec::host): activations, checkpoints, gradients and parameters of an optimiser on the host.
//
// Each direction has a stream, in which copies wait for each other, so that one copy has the whole
// link. A copy takes kCopyLatency and its bytes over the bandwidth.
//
// Activations (SSDTrain, arXiv 2408.10013): a layer's are copied out after its forward pass, and in
// before its backward pass, `ahead` layers before their use; at most `ahead` + 1 layers are on
// their way out. Checkpoints in host memory (Gemini, SOSP 2023): optimiser states, a piece after
// each layer's pass, from the iteration's beginning on; the optimiser waits for the last piece. An
// optimiser on the host (ZeRO-Offload, arXiv 2101.06840): gradients out, the host's update,
// parameters in, all after the last backward pass.

class HostTransfers {
 public:
  explicit HostTransfers(RankEmitter& emitter);

  void begin_iteration(std::uint32_t iteration);
  /// To be called before (and after) a layer's forward pass.
  void before_forward(std::uint32_t layer);
  void after_forward(std::uint32_t layer, std::uint32_t micro_batch);
  /// To be called before layer `at` of a backward pass over `layers` (in the order of use).
  void before_backward(const std::vector<std::uint32_t>& layers, std::size_t at,
                       std::uint32_t micro_batch);
  /// To be called after a layer's pass, forward or backward: copies the next piece of a checkpoint.
  void after_pass();
  /// To be called when all gradients are complete: the optimiser waits for the rest of a
  /// checkpoint.
  void before_step();
  /// The optimiser's step. Precondition: updates_on_host().
  void update();

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  ///< layer and micro-batch
  enum class Way : std::uint8_t { kOut, kIn };

  [[nodiscard]] Duration time_of(double bytes) const;
  std::uint32_t copy(Way way, std::string_view name, double bytes,
                     const std::vector<std::uint32_t>& after);
  [[nodiscard]] double kept_bytes(std::uint32_t layer) const;
  void fetch(const Key& key);
  std::uint16_t stream_of(Way way);

  RankEmitter& emitter_;
  std::map<Way, std::uint16_t> streams_;
  std::map<Key, std::uint32_t> offloads_;   ///< the operations that copy activations out
  std::map<Key, std::uint32_t> fetches_;
  std::vector<std::uint32_t> under_way_;    ///< copies out of forward passes, in order
  double piece_bytes_ = 0;                  ///< of a checkpoint, for each layer's pass
  bool saves_ = false;                      ///< the present iteration writes a checkpoint
  std::uint32_t last_piece_ = program::kNoIndex;
};

/// Whether the plan's optimiser runs on the host.
[[nodiscard]] bool updates_on_host(const PlanSpec& plan);
/// Bandwidth of the host link in one direction: the plan's, else the device file's.
[[nodiscard]] BytesPerSecond host_bandwidth(const ParallelPlan& plan);
/// Optimiser states that a rank writes for a checkpoint: replicas with the same states write a part
/// each.
[[nodiscard]] double checkpoint_bytes(const ParallelPlan& plan, std::uint32_t pipeline);

}  // namespace bubblesim::synth
