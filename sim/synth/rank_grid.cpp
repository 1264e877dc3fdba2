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
  switch (folding_) {
    case Folding::kNothing: return 1;
    case Folding::kData: return data_;
    case Folding::kAll: break;
  }
  return data_ * context_ * tensor_;
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

Communicator RankGrid::tensor(const RankPlace& place) const {
  RankPlace first = place;
  first.tensor = 0;
  Communicator out;
  out.first_rank = rank(first);
  out.group = network::strided_group(out.first_rank, tensor_);
  out.simulated = folding_ == Folding::kAll ? 1 : tensor_;
  out.twins = {if_folded(data_, replica_ranks()), if_all(context_, tensor_)};
  return out;
}

Communicator RankGrid::context(const RankPlace& place) const {
  RankPlace first = place;
  first.context = 0;
  Communicator out;
  out.first_rank = rank(first);
  out.group = network::strided_group(out.first_rank, context_, tensor_);
  out.simulated = folding_ == Folding::kAll ? 1 : context_;
  out.twins = {if_folded(data_, replica_ranks()), if_all(tensor_, 1)};
  return out;
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
  Communicator out;
  out.first_rank = rank({place.pipeline, first / context_, first % context_, place.tensor});
  out.group = network::strided_group(out.first_rank, count, tensor_);
  std::uint32_t groups = 1;  // that are simulated
  switch (folding_) {
    case Folding::kNothing:
      out.simulated = count;
      groups = runs;
      break;
    case Folding::kData:
      out.simulated = std::min(first + count, context_) - first;
      groups = divide_up(context_, count);
      break;
    case Folding::kAll: break;
  }
  out.twins = {folded_groups(groups, run, runs, count * tensor_), if_all(tensor_, 1)};
  return out;
}

Communicator RankGrid::data(const RankPlace& place) const {
  RankPlace first = place;
  first.data = 0;
  first.context = 0;
  Communicator out;
  out.first_rank = rank(first);
  out.group = network::strided_group(out.first_rank, data_ * context_, tensor_);
  switch (folding_) {
    case Folding::kNothing: out.simulated = data_ * context_; break;
    case Folding::kData: out.simulated = context_; break;
    case Folding::kAll: out.simulated = 1; break;
  }
  out.twins[0] = if_all(tensor_, 1);
  return out;
}

Communicator RankGrid::region(const RankPlace& place) const {
  const std::uint32_t replicas = data_ / regions_;
  RankPlace first = place;
  first.data = place.data / replicas * replicas;
  first.context = 0;
  Communicator out;
  out.first_rank = rank(first);
  out.group = network::strided_group(out.first_rank, replicas * context_, tensor_);
  out.simulated = folding_ == Folding::kAll       ? 1
                  : folding_ == Folding::kNothing ? replicas * context_
                                                  : context_;
  out.twins = {if_folded(regions_, replicas * replica_ranks()), if_all(tensor_, 1)};
  return out;
}

// Folded, every rank of a region exchanges with its likes at the same time.
Communicator RankGrid::across_regions(const RankPlace& place) const {
  const std::uint32_t replicas = data_ / regions_;
  RankPlace first = place;
  first.data = place.data % replicas;
  Communicator out;
  out.first_rank = rank(first);
  const std::uint32_t region_ranks = replicas * context_ * tensor_;
  out.group = network::strided_group(out.first_rank, regions_, region_ranks);
  out.simulated = folding_ == Folding::kNothing ? regions_ : 1;
  out.twins = {if_folded(replicas, replica_ranks()), if_all(replica_ranks(), 1)};
  return out;
}

Communicator RankGrid::expert_data(const RankPlace& place) const { return likes(place, expert_); }

Communicator RankGrid::likes(const RankPlace& place, std::uint32_t count) const {
  const std::uint32_t first = (place.data * context_ + place.context) % count;
  const std::uint32_t runs = data_ * context_ / count;
  Communicator out;
  out.first_rank = rank({place.pipeline, first / context_, first % context_, place.tensor});
  out.group = network::strided_group(out.first_rank, runs, tensor_ * count);
  std::uint32_t groups = 1;  // that are simulated
  switch (folding_) {
    case Folding::kNothing:
      out.simulated = runs;
      groups = count;
      break;
    case Folding::kData:
      out.simulated = divide_up(context_ - first, count);
      groups = std::min(context_, count);
      break;
    case Folding::kAll: break;
  }
  out.twins = {folded_groups(groups, first, count, tensor_), if_all(tensor_, 1)};
  return out;
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
  Communicator out;
  out.group = network::strided_group(0, pipeline_ * data_ * context_ * tensor_);
  out.simulated = pipeline_ * data_ * context_ * tensor_ / fold();
  return out;
}

}  // namespace bubblesim::synth
