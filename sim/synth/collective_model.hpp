// Modelled times of a recorded job's collectives on one cluster: of those that retarget takes
// there, and of those whose recording has sizes only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/network/topology.hpp"
#include "traces/import/collective_times.hpp"
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

  /// Alone on the cluster, between all ranks, or those listed: a send goes from the first of them
  /// to the second.
  [[nodiscard]] Duration time(network::CollectivePattern kind, double array,
                              std::vector<std::uint32_t> listed = {});
  /// The array that takes `span`, to one part in a thousand; nothing: even one byte takes longer.
  [[nodiscard]] std::optional<double> array_for(network::CollectivePattern kind, Duration span);

 private:
  CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks);

  network::Topology topology_;
  network::Group group_;
  std::map<std::tuple<network::CollectivePattern, double, std::vector<std::uint32_t>>, Duration>
      times_;
};

/// The times of collectives on a cluster, rank n on its GPU n. Each is alone on its links. Fault,
/// when asked: a cluster that is too small for the job.
[[nodiscard]] traces::CollectiveTimes collective_times(hardware::ClusterSpec cluster);

}  // namespace bubblesim::synth
