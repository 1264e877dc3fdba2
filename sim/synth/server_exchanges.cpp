#include "sim/synth/server_exchanges.hpp"

#include <cmath>

#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {

ServerExchanges::Meeting ServerExchanges::meeting(const model::Communication& what) {
  const network::CollectivePattern kind = collective_kind(what.exchange);
  const auto bytes = static_cast<std::uint64_t>(std::llround(what.bytes));
  const auto [place, fresh] = planned_.try_emplace({kind, bytes});
  Planned& planned = place->second;
  if (fresh) {
    planned.transfer = topology_.plan(kind, Bytes{bytes}, group_);
    planned.meeting = {rendezvous_.add({group_.size(), &planned.transfer}),
                       planned.transfer.channels};
  }
  return planned.meeting;
}

}  // namespace bubblesim::synth
