// What a rank receives from and sends to other stages of the pipeline.
//
// Each direction of each edge between stages has a stream of its own at both ends, and micro-
// batches travel in the order in which the sender makes them; a receiver that wants a later one
// first posts the receives before it. Tensor ranks may send a share each, which the receiving ones
// then gather among themselves (SoftwareSpec::pipeline_tensors).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {

class StageTransfers {
 public:
  explicit StageTransfers(RankEmitter& emitter);

  /// Before the actions of iteration `iteration`: none of its micro-batches is received yet.
  void begin_iteration(std::uint32_t iteration);

  /// Before a forward: activations of all producers; the next kernel waits for them.
  void receive_inputs(std::uint32_t stage, std::uint32_t micro_batch);
  /// Before a backward: gradients of all consumers.
  void receive_gradients(std::uint32_t stage, std::uint32_t micro_batch);
  /// After a forward, or after the input-gradient half of a backward.
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
    std::vector<std::uint32_t> order;           ///< micro-batches as the sender makes them
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

}  // namespace bubblesim::synth
