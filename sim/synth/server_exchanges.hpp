// The meetings of a server's GPUs: a collective for each kind and size of exchange that its steps
// have, carried by the links that training's collectives load too.
//
// An exchange costs what sim/network says of the server's GPUs. Its kernel holds SMs on each of
// them from its own start on, as training's does. A size that a step has had is never forgotten:
// there are as many as counts of tokens, of one member or of all together. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "sim/model/layer_work.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/network/topology.hpp"

namespace bubblesim::synth {

class ServerExchanges {
 public:
  struct Meeting {
    std::uint32_t collective = 0;  ///< in the rendezvous
    std::uint32_t channels = 1;    ///< blocks of the collective's kernel on each GPU
  };

  /// `group`: GPUs that run steps together. The others outlive this, and the
  /// rendezvous was made with the topology's links.
  ServerExchanges(const network::Topology& topology, network::Group group,
                  network::Rendezvous& rendezvous)
      : topology_(topology), group_(std::move(group)), rendezvous_(rendezvous) {}

  /// The meeting of all GPUs for this exchange: the same for each that asks, whichever step asks
  /// first.
  [[nodiscard]] Meeting meeting(const model::Communication& what);

 private:
  struct Planned {
    network::Transfer transfer;
    Meeting meeting;
  };

  const network::Topology& topology_;
  network::Group group_;
  network::Rendezvous& rendezvous_;
  std::map<std::pair<network::CollectivePattern, std::uint64_t>, Planned> planned_;  ///< by bytes
};

/// The meetings of a GPU's exchanges; null: they have no peers, and take no time.
struct ServerMeetings {
  ServerExchanges* tensor = nullptr;   ///< of its member's GPUs, which share each layer
  ServerExchanges* experts = nullptr;  ///< of all members' GPUs, which share the experts

  [[nodiscard]] ServerExchanges* exchanges_of(model::ParallelAxis axis) const {
    return axis == model::ParallelAxis::kExpert ? experts : tensor;
  }
};

}  // namespace bubblesim::synth
