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
    // Each of two GPUs reads the other's array: a gather of both.
    const bool direct = kind == network::CollectivePattern::kAllReduce && group_.size() == 2 &&
                        what.bytes < model::kLeastRingBytes;
    planned.transfer =
        direct ? topology_.plan(network::CollectivePattern::kAllGather, Bytes{2 * bytes}, group_)
               : topology_.plan(kind, Bytes{bytes}, group_);
    planned.meeting = {rendezvous_.add({group_.size(), &planned.transfer}),
                       planned.transfer.channels};
  }
  return planned.meeting;
}

}  // namespace bubblesim::synth
