#include "sim/synth/rank_grid.hpp"

#include <algorithm>

#include "sim/base/divide.hpp"

namespace bubblesim::synth {
namespace {

std::uint32_t regions_of(const PlanSpec& plan, const hardware::ClusterSpec& cluster) {
  if (!cluster.regions) return 1;
  const std::uint32_t region = cluster.regions->nodes_per_region * cluster.gpus_per_node;
  return (plan.world_size() + region - 1) / region;
}

// Group `number` and the groups folded into it: the first `simulated` of `groups` are simulated,
// and the others are folded into them round robin.
Shifts folded_groups(std::uint32_t simulated, std::uint32_t number, std::uint32_t groups,
                     std::uint32_t stride) {
  return {divide_up(groups - number, simulated), simulated * stride};
}

}  // namespace

RankGrid::RankGrid(const PlanSpec& plan, const hardware::ClusterSpec& cluster)
    : data_(plan.data), tensor_(plan.tensor), context_(plan.context), expert_(plan.expert),
      pipeline_(plan.pipeline), node_size_(cluster.gpus_per_node),
      regions_(regions_of(plan, cluster)),
      regions_apart_(plan.wide_area.mode != WideAreaMode::kEveryIteration),
      folding_(plan.folding) {}

std::uint32_t RankGrid::rank(const RankPlace& place) const {
  return ((place.pipeline * data_ + place.data) * context_ + place.context) * tensor_ +
         place.tensor;
}

RankPlace RankGrid::place(std::uint32_t rank) const {
  RankPlace out;
  out.tensor = rank % tensor_;
  rank /= tensor_;
  out.context = rank % context_;
  rank /= context_;
  out.data = rank % data_;
  out.pipeline = rank / data_;
  return out;
}

std::vector<std::uint32_t> RankGrid::simulated() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t r = 0; r < pipeline_ * data_ * context_ * tensor_; ++r) {
    const RankPlace at = place(r);
    if (folding_ != Folding::kNothing && at.data > 0) continue;
    if (folding_ == Folding::kAll && (at.tensor > 0 || at.context > 0)) continue;
    out.push_back(r);
  }
  return out;
}

std::uint32_t RankGrid::fold() const {
  return by_folding(1, data_, data_ * context_ * tensor_);
}

std::uint32_t RankGrid::expert_rank(const RankPlace& place) const {
  return (place.data * context_ + place.context) % expert_;
}

// With folded replicas the context ranks of the first are simulated.
bool RankGrid::experts_apart() const {
  return folding_ == Folding::kNothing ||
         (folding_ == Folding::kData && context_ % expert_ == 0);
}

Shifts RankGrid::if_all(std::uint32_t count, std::uint32_t stride) const {
  return folding_ == Folding::kAll ? Shifts{count, stride} : Shifts{};
}

Shifts RankGrid::if_folded(std::uint32_t count, std::uint32_t stride) const {
  return folding_ == Folding::kNothing ? Shifts{} : Shifts{count, stride};
}

std::uint32_t RankGrid::by_folding(std::uint32_t nothing, std::uint32_t data,
                                     std::uint32_t all) const {
  return folding_ == Folding::kNothing ? nothing : folding_ == Folding::kData ? data : all;
}

Communicator RankGrid::strided(const RankPlace& first, std::uint32_t members, std::uint32_t stride,
                               std::uint32_t simulated, Shifts outer, Shifts inner) const {
  return {network::strided_group(rank(first), members, stride), simulated, rank(first),
          {outer, inner}};
}

Communicator RankGrid::tensor(const RankPlace& place) const {
  return strided({place.pipeline, place.data, place.context, 0}, tensor_, 1,
                 by_folding(tensor_, tensor_, 1), if_folded(data_, replica_ranks()),
                 if_all(context_, tensor_));
}

Communicator RankGrid::context(const RankPlace& place) const {
  return strided({place.pipeline, place.data, 0, place.tensor}, context_, tensor_,
                 by_folding(context_, context_, 1), if_folded(data_, replica_ranks()),
                 if_all(tensor_, 1));
}

// A ring that is folded into this one may cross nodes where this one does not.
Communicator RankGrid::context_hop(const RankPlace& place) const {
  Communicator out = context(place);
  if (context_ == 1) return out;
  const auto [rings, apart] = out.twins[0];
  for (std::uint32_t ring = 0; ring < std::min(rings, node_size_); ++ring) {
    for (std::uint32_t i = 0; i + 1 < context_; ++i) {
      const std::uint32_t from = out.first_rank + ring * apart + i * tensor_;
      if (from / node_size_ == (from + tensor_) / node_size_) continue;
      out.group.listed = {from, from + tensor_};
      out.twins[0].count = rings - ring;
      return out;
    }
  }
  out.group.listed = {out.first_rank, out.first_rank + tensor_};
  return out;
}

// Expert groups are runs of the data and context ranks (Megatron-LM: expert parallelism lies
// inside data parallelism).
Communicator RankGrid::expert(const RankPlace& place) const { return neighbours(place, expert_); }

Communicator RankGrid::neighbours(const RankPlace& place, std::uint32_t count) const {
  const std::uint32_t run = (place.data * context_ + place.context) / count;
  const std::uint32_t runs = data_ * context_ / count;
  const std::uint32_t first = run * count;
  const std::uint32_t groups = by_folding(runs, divide_up(context_, count), 1);
  return strided({place.pipeline, first / context_, first % context_, place.tensor}, count, tensor_,
                 by_folding(count, std::min(first + count, context_) - first, 1),
                 folded_groups(groups, run, runs, count * tensor_), if_all(tensor_, 1));
}

Communicator RankGrid::data(const RankPlace& place) const {
  const std::uint32_t members = data_ * context_;
  return strided({place.pipeline, 0, 0, place.tensor}, members, tensor_,
                 by_folding(members, context_, 1), if_all(tensor_, 1), {});
}

Communicator RankGrid::region(const RankPlace& place) const {
  const std::uint32_t replicas = data_ / regions_;
  const std::uint32_t members = replicas * context_;
  return strided({place.pipeline, place.data / replicas * replicas, 0, place.tensor}, members,
                 tensor_, by_folding(members, context_, 1),
                 if_folded(regions_, replicas * replica_ranks()), if_all(tensor_, 1));
}

// Folded, every rank of a region exchanges with its likes at the same time.
Communicator RankGrid::across_regions(const RankPlace& place) const {
  const std::uint32_t replicas = data_ / regions_;
  return strided({place.pipeline, place.data % replicas, place.context, place.tensor}, regions_,
                 replicas * replica_ranks(), by_folding(regions_, 1, 1),
                 if_folded(replicas, replica_ranks()), if_all(replica_ranks(), 1));
}

Communicator RankGrid::expert_data(const RankPlace& place) const { return likes(place, expert_); }

Communicator RankGrid::likes(const RankPlace& place, std::uint32_t count) const {
  const std::uint32_t first = (place.data * context_ + place.context) % count;
  const std::uint32_t runs = data_ * context_ / count;
  const std::uint32_t groups = by_folding(count, std::min(context_, count), 1);
  return strided({place.pipeline, first / context_, first % context_, place.tensor}, runs,
                 tensor_ * count, by_folding(runs, divide_up(context_ - first, count), 1),
                 folded_groups(groups, first, count, tensor_), if_all(tensor_, 1));
}

Communicator RankGrid::replicas(const RankPlace& place) const {
  return regions_apart_ ? region(place) : data(place);
}

Communicator RankGrid::expert_replicas(const RankPlace& place) const {
  return regions_apart_ ? region(place) : expert_data(place);
}

// Every rank of a stage sends at the same time as the one that stands for it.
Communicator RankGrid::pair(const RankPlace& place, std::uint32_t other_pipeline) const {
  RankPlace other = place;
  other.pipeline = other_pipeline;
  Communicator out;
  out.first_rank = std::min(rank(place), rank(other));
  out.group.listed = {rank(place), rank(other)};
  out.simulated = 2;
  out.twins = {if_folded(data_, replica_ranks()), if_all(replica_ranks(), 1)};
  return out;
}

Communicator RankGrid::model(const RankPlace& place) const {
  RankPlace first = place;
  first.pipeline = 0;
  first.tensor = 0;
  Communicator out;
  out.first_rank = rank(first);
  out.group.first = out.first_rank;
  out.group.inner = tensor_;
  out.group.outer = pipeline_;
  out.group.outer_stride = data_ * context_ * tensor_;
  out.simulated = folding_ == Folding::kAll ? pipeline_ : pipeline_ * tensor_;
  out.twins = {if_folded(data_, replica_ranks()), if_all(context_, tensor_)};
  return out;
}

Communicator RankGrid::world() const {
  return {.group = network::strided_group(0, pipeline_ * data_ * context_ * tensor_),
          .simulated = pipeline_ * data_ * context_ * tensor_ / fold()};
}

}  // namespace bubblesim::synth
