// The place of each rank of a plan: its pipeline stage, replica, context and tensor part, its GPU,
// and its communicators. Ranks are numbered as in Megatron-LM: tensor fastest, then context, data,
// pipeline; rank n runs on GPU n.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/topology.hpp"
#include "sim/synth/plan_spec.hpp"

namespace bubblesim::synth {

struct RankPlace {
  std::uint32_t pipeline = 0;
  std::uint32_t data = 0;
  std::uint32_t context = 0;
  std::uint32_t tensor = 0;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

/// `count` groups, each `stride` ranks after the previous one.
struct Shifts {
  std::uint32_t count = 1;
  std::uint32_t stride = 0;
};

/// Ranks that exchange data, and the number of simulated ones.
struct Communicator {
  network::Group group;
  std::uint32_t simulated = 1;   ///< simulated members; 1: the others are folded
  std::uint32_t first_rank = 0;  ///< distinguishes communicators of one axis
  /// Shifts from the group to the groups folded into it: one for each sum of a shift of twins[0]
  /// and a shift of twins[1].
  std::array<Shifts, 2> twins{};
};

class RankGrid {
 public:
  RankGrid(const PlanSpec& plan, const hardware::ClusterSpec& cluster);

  [[nodiscard]] std::uint32_t rank(const RankPlace& place) const;
  [[nodiscard]] RankPlace place(std::uint32_t rank) const;

  /// The simulated ranks, ascending.
  [[nodiscard]] std::vector<std::uint32_t> simulated() const;
  /// Number of ranks that each simulated one represents.
  [[nodiscard]] std::uint32_t fold() const;
  /// Index of the rank among those that divide the experts.
  [[nodiscard]] std::uint32_t expert_rank(const RankPlace& place) const;
  /// Whether all expert ranks are simulated separately.
  [[nodiscard]] bool experts_apart() const;

  [[nodiscard]] Communicator tensor(const RankPlace& place) const;
  [[nodiscard]] Communicator context(const RankPlace& place) const;
  /// Two neighbours in the context ranks' ring, on different nodes if any are: the slowest hop.
  /// All ranks of context() take part.
  [[nodiscard]] Communicator context_hop(const RankPlace& place) const;
  /// The experts' all-to-all.
  [[nodiscard]] Communicator expert(const RankPlace& place) const;
  /// This many neighbours of the data and context ranks. Precondition: `count` divides their
  /// number.
  [[nodiscard]] Communicator neighbours(const RankPlace& place, std::uint32_t count) const;
  /// The ranks at the place of this one in each run of `count` neighbours. Precondition: as above.
  [[nodiscard]] Communicator likes(const RankPlace& place, std::uint32_t count) const;
  /// All ranks with the same parameters: data and context ranks.
  [[nodiscard]] Communicator data(const RankPlace& place) const;
  /// region(): the ranks of data() in the rank's region; the next: its counterparts in all regions.
  /// Wide-area plans only.
  [[nodiscard]] Communicator region(const RankPlace& place) const;
  [[nodiscard]] Communicator across_regions(const RankPlace& place) const;
  /// All ranks with the same experts.
  [[nodiscard]] Communicator expert_data(const RankPlace& place) const;
  /// The ranks with which gradients are exchanged in every iteration: data(), or region() if
  /// regions synchronise separately; for experts, expert_data() or region().
  [[nodiscard]] Communicator replicas(const RankPlace& place) const;
  [[nodiscard]] Communicator expert_replicas(const RankPlace& place) const;
  /// The same part of two pipeline stages.
  [[nodiscard]] Communicator pair(const RankPlace& place, std::uint32_t other_pipeline) const;
  /// All parts of one replica.
  [[nodiscard]] Communicator model(const RankPlace& place) const;
  /// All ranks.
  [[nodiscard]] Communicator world() const;

 private:
  /// Groups of the same kind folded into one, `stride` apart: if_all with Folding::kAll, if_folded
  /// with kAll or kData; none if they are simulated.
  [[nodiscard]] Shifts if_all(std::uint32_t count, std::uint32_t stride) const;
  [[nodiscard]] Shifts if_folded(std::uint32_t count, std::uint32_t stride) const;
  [[nodiscard]] std::uint32_t replica_ranks() const { return context_ * tensor_; }
  /// The number for each way of folding.
  [[nodiscard]] std::uint32_t by_folding(std::uint32_t nothing, std::uint32_t data,
                                         std::uint32_t all) const;
  /// `members` from `first` on, `stride` apart.
  [[nodiscard]] Communicator strided(const RankPlace& first, std::uint32_t members,
                                     std::uint32_t stride, std::uint32_t simulated, Shifts outer,
                                     Shifts inner) const;

  std::uint32_t data_;
  std::uint32_t tensor_;
  std::uint32_t context_;
  std::uint32_t expert_;
  std::uint32_t pipeline_;
  std::uint32_t node_size_;
  std::uint32_t regions_;      ///< number that the plan spans
  bool regions_apart_;         ///< regions do not exchange in every iteration
  Folding folding_;
};

}  // namespace bubblesim::synth
