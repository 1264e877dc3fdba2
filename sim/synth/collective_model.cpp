#include "sim/synth/collective_model.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::synth {

std::optional<network::CollectivePattern> network_kind(traces::CollectiveKind kind) {
  using From = traces::CollectiveKind;
  using To = network::CollectivePattern;
  switch (kind) {
    case From::kAllReduce:
    case From::kBarrier: return To::kAllReduce;
    case From::kAllGather: return To::kAllGather;
    case From::kReduceScatter: return To::kReduceScatter;
    case From::kBroadcast:
    case From::kReduce: return To::kBroadcast;
    case From::kAllToAll: return To::kAllToAll;
    case From::kUnknown:
    case From::kSend:
    case From::kRecv:
    case From::kSendRecv: return std::nullopt;
  }
  return std::nullopt;
}

double array_bytes(network::CollectivePattern kind, std::uint64_t input, std::uint32_t ranks) {
  const double bytes = static_cast<double>(input);
  return kind == network::CollectivePattern::kAllGather ? bytes * ranks : bytes;
}

CollectiveModel::CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks)
    : topology_(std::move(cluster)), group_(network::strided_group(0, ranks)) {}

Result<CollectiveModel> CollectiveModel::make(hardware::ClusterSpec cluster, std::uint32_t ranks,
                                              std::vector<std::string>& notes) {
  if (ranks > cluster.gpus()) {
    const std::string has = cluster.name + " has " + std::to_string(cluster.gpus()) + " GPUs";
    if (cluster.nics.count == 0) {
      return fail("found " + std::to_string(ranks) + " ranks, but cluster " + has +
                  " and no network between nodes; expected at most " +
                  std::to_string(cluster.gpus()));
    }
    const std::uint32_t nodes = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    notes.push_back("cluster " + has + "; taken with " + std::to_string(nodes) + " nodes");
    cluster = hardware::with_nodes(std::move(cluster), nodes);
  }
  return CollectiveModel(std::move(cluster), ranks);
}

Duration CollectiveModel::time(network::CollectivePattern kind, double array) {
  const auto [place, fresh] = times_.try_emplace({kind, array});
  if (fresh) {
    const Bytes bytes{static_cast<std::uint64_t>(std::llround(array))};
    place->second = topology_.solo_time(topology_.plan(kind, bytes, group_));
  }
  return place->second;
}

std::optional<double> CollectiveModel::array_for(network::CollectivePattern kind, Duration span) {
  double low = 1;
  double high = 1e13;  // an array that no GPU holds
  if (time(kind, low) > span) return std::nullopt;
  while (high > low * 1.001) {
    const double middle = std::sqrt(low * high);
    (time(kind, middle) > span ? high : low) = middle;
  }
  return low;
}

}  // namespace bubblesim::synth
