// Modelled times of a captured job's collectives on one cluster. Internal to retarget.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/network/topology.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

/// What the network calls a recorded kind: a reduce moves what a broadcast moves, the other way
/// round; a barrier is an all-reduce of one element. Nothing: not known, or between some ranks.
[[nodiscard]] std::optional<network::CollectivePattern> network_kind(traces::CollectiveKind kind);

/// The whole array of a collective of `ranks`, of which each rank puts in `input` bytes: an
/// all-gather's is the sum over ranks.
[[nodiscard]] double array_bytes(network::CollectivePattern kind, std::uint64_t input,
                                 std::uint32_t ranks);

/// Ranks 0 to n-1 on consecutive GPUs of a cluster.
class CollectiveModel {
 public:
  /// A cluster with NICs gets as many nodes as the ranks need (said in `notes`); one without that
  /// is too small is a fault.
  [[nodiscard]] static Result<CollectiveModel> make(hardware::ClusterSpec cluster,
                                                    std::uint32_t ranks,
                                                    std::vector<std::string>& notes);

  /// Alone on the cluster.
  [[nodiscard]] Duration time(network::CollectivePattern kind, double array);
  /// The array that takes `span`, to one part in a thousand; nothing: even one byte takes longer.
  [[nodiscard]] std::optional<double> array_for(network::CollectivePattern kind, Duration span);

 private:
  CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks);

  network::Topology topology_;
  network::Group group_;
  std::map<std::pair<network::CollectivePattern, double>, Duration> times_;
};

}  // namespace bubblesim::synth
