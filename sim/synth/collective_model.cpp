#include "sim/synth/collective_model.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

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

Duration CollectiveModel::time(network::CollectivePattern kind, double array,
                               std::vector<std::uint32_t> listed) {
  network::Group group = group_;
  group.listed = listed;
  const auto [place, fresh] = times_.try_emplace({kind, array, std::move(listed)});
  if (fresh) {
    const Bytes bytes{static_cast<std::uint64_t>(std::llround(array))};
    place->second = topology_.solo_time(topology_.plan(kind, bytes, group));
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

namespace {

constexpr double kMostArray = 1e15;  // bytes that no job holds: a petabyte

/// Nothing: kind or size does not say what is moved.
std::optional<std::pair<network::CollectivePattern, double>> moved_by(
    const traces::UntimedCollective& untimed) {
  using traces::CollectiveKind;
  const bool pair =
      untimed.kind == CollectiveKind::kSend || untimed.kind == CollectiveKind::kRecv;
  const auto kind =
      pair ? network::CollectivePattern::kSendRecv : network_kind(untimed.kind);
  if (!kind) return std::nullopt;
  double array =
      array_bytes(*kind, untimed.bytes, static_cast<std::uint32_t>(untimed.ranks.size()));
  if (untimed.kind == CollectiveKind::kBarrier) array = 4;
  if (array < 1 || array > kMostArray) return std::nullopt;
  return std::pair(*kind, array);
}

}  // namespace

traces::CollectiveTimes collective_times(hardware::ClusterSpec cluster) {
  // The cluster takes the job's size when it is known; every copy of the function has one model.
  const auto model = std::make_shared<std::optional<CollectiveModel>>();
  return [cluster = std::move(cluster),
          model](const traces::UntimedCollective& untimed) -> Result<Duration> {
    if (!*model) {
      std::vector<std::string> notes;
      BUBBLESIM_ASSIGN_OR_RETURN(*model, CollectiveModel::make(cluster, untimed.world, notes));
    }
    const auto moved = moved_by(untimed);
    if (!moved) return Duration{};
    return (*model)->time(moved->first, moved->second,
                          {untimed.ranks.begin(), untimed.ranks.end()});
  };
}

}  // namespace bubblesim::synth
