#include "sim/synth/collective_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace bubblesim::synth {
namespace {

traces::CollectiveKind label_of(network::CollectivePattern kind) {
  switch (kind) {
    case network::CollectivePattern::kAllReduce: return traces::CollectiveKind::kAllReduce;
    case network::CollectivePattern::kAllGather: return traces::CollectiveKind::kAllGather;
    case network::CollectivePattern::kReduceScatter: return traces::CollectiveKind::kReduceScatter;
    case network::CollectivePattern::kBroadcast: return traces::CollectiveKind::kBroadcast;
    case network::CollectivePattern::kAllToAll: return traces::CollectiveKind::kAllToAll;
    case network::CollectivePattern::kSendRecv: break;
  }
  return traces::CollectiveKind::kSendRecv;
}

bool is_transfer(Channel channel) {
  return channel == Channel::kForwardTransfer || channel == Channel::kBackwardTransfer;
}

}  // namespace

std::string_view channel_name(Channel channel) {
  switch (channel) {
    case Channel::kTensor: return "tensor";
    case Channel::kContext: return "context";
    case Channel::kExpert: return "expert";
    case Channel::kData: return "data";
    case Channel::kExpertData: return "expert data";
    case Channel::kTokenSplit: return "token split";
    case Channel::kEmbedding: return "embedding";
    case Channel::kCopies: return "copies";
    case Channel::kNorm: return "norm";
    case Channel::kWideArea: return "wide area";
    case Channel::kPrimary: return "first copy";
    case Channel::kSecondary: return "second copy";
    case Channel::kUpdated: return "updated parameters";
    case Channel::kResponses: return "responses";
    case Channel::kWeights: return "weights";
    case Channel::kForwardTransfer: return "forward";
    case Channel::kBackwardTransfer: return "backward";
    case Channel::kReceived: return "received";
  }
  return "";
}

std::uint32_t CollectiveTable::find(const Use& use, network::CollectivePattern kind, double bytes,
                                    const Communicator& communicator,
                                    const network::CollectiveKernel& form) {
  const auto [place, fresh] =
      uses_.try_emplace(use, static_cast<std::uint32_t>(job_.collectives.size()));
  const auto whole = static_cast<std::uint64_t>(std::llround(bytes));
  if (!fresh) {
    BUBBLESIM_CHECK(job_.collectives[place->second].bytes == whole,
                    "ranks that meet ask for the same");
    return place->second;
  }
  const auto& listed = communicator.group.listed;
  const Demand demand{kind, whole, communicator.first_rank,
                      listed.empty() ? 0 : listed.front(), listed.empty() ? 0 : listed.back(),
                      communicator.group.size(), use.channel, form};
  workload::JoinedCollective joined;
  joined.participants = communicator.simulated;
  joined.bytes = demand.bytes;
  joined.kind = is_transfer(use.channel) ? traces::CollectiveKind::kSend : label_of(kind);
  joined.group = group_of(use, communicator);
  joined.group_size = communicator.group.size();
  joined.point_to_point = is_transfer(use.channel);
  if (joined.point_to_point) {
    joined.from = communicator.group.listed[0];
    joined.to = communicator.group.listed[1];
  }
  joined.transfer = transfer_of(demand, communicator);
  job_.collectives.push_back(joined);
  return place->second;
}

std::uint32_t CollectiveTable::group_of(const Use& use, const Communicator& communicator) {
  const std::uint32_t other =
      is_transfer(use.channel) ? communicator.group.listed[1] : communicator.first_rank;
  const auto [place, fresh] =
      groups_.try_emplace(std::tuple{use.channel, use.communicator, other},
                          static_cast<std::uint32_t>(job_.groups.size()));
  if (fresh) {
    std::string name = fmt::format("{} {}", channel_name(use.channel), use.communicator);
    if (is_transfer(use.channel)) name += fmt::format(" to {}", other);
    job_.groups.push_back(std::move(name));
  }
  return place->second;
}

std::uint32_t CollectiveTable::transfer_of(const Demand& demand,
                                           const Communicator& communicator) {
  const auto [place, fresh] =
      transfers_.try_emplace(demand, static_cast<std::uint32_t>(job_.transfers.size()));
  if (fresh) {
    FoldedTransfer folded = folded_transfer(topology_, demand.kind, Bytes{demand.bytes},
                                            communicator, demand.form);
    if (folded.twins == Twins::kApart) job_.counters.add(kFoldedApart);
    job_.transfers.push_back(std::move(folded.transfer));
  }
  return place->second;
}

namespace {

using network::Group;
using network::Topology;
using network::Transfer;

Group shifted(Group group, std::uint32_t offset) {
  group.first += offset;
  for (std::uint32_t& rank : group.listed) rank += offset;
  return group;
}

// Places on nodes, and on leaves and regions where there are several, repeat after so many GPUs; on
// up-links of their own they need not.
std::uint32_t period(const hardware::ClusterSpec& cluster) {
  if (cluster.tree.placement != hardware::FlowPlacement::kSpread) return cluster.gpus();
  std::uint32_t nodes = 1;
  if (cluster.nodes > cluster.tree.nodes_per_leaf) nodes = cluster.tree.nodes_per_leaf;
  if (cluster.regions) nodes = std::lcm(nodes, cluster.regions->nodes_per_region);
  return nodes * cluster.gpus_per_node;
}

// Those that are distinct in their places, and as many again: the last one of a period may share a
// node with the first one of the next.
std::vector<Group> twins_of(const Communicator& communicator,
                            const hardware::ClusterSpec& cluster) {
  const auto few = [&](const Shifts& shifts) {
    const std::uint32_t apart = std::gcd(shifts.stride, period(cluster));
    return std::min(shifts.count, 2 * period(cluster) / std::max(apart, 1U));
  };
  const auto& [outer, inner] = communicator.twins;
  std::vector<Group> twins;
  for (std::uint32_t i = 0; i < few(outer); ++i) {
    for (std::uint32_t j = 0; j < few(inner); ++j) {
      twins.push_back(shifted(communicator.group, i * outer.stride + j * inner.stride));
    }
  }
  return twins;
}

double largest(const Transfer& transfer) {
  double bytes = 0;
  for (const network::LinkLoad& load : transfer.loads) bytes = std::max(bytes, load.bytes);
  return bytes;
}

// Each of transfers that run at once gets what all of them load its links with.
void share_links(const Topology& topology, std::vector<Transfer>& transfers) {
  std::vector<double> bytes(topology.links().size());
  for (const Transfer& transfer : transfers) {
    for (const network::LinkLoad& load : transfer.loads) bytes[load.link.index()] += load.bytes;
  }
  for (Transfer& transfer : transfers) {
    if (transfer.loads.empty()) continue;
    const double alone = largest(transfer);
    for (network::LinkLoad& load : transfer.loads) load.bytes = bytes[load.link.index()];
    transfer.shares = largest(transfer) / alone;
  }
}

}  // namespace

FoldedTransfer folded_transfer(const Topology& topology, network::CollectivePattern kind,
                               Bytes bytes, const Communicator& communicator,
                               const network::CollectiveKernel& form) {
  std::vector<Transfer> transfers;
  for (const Group& twin : twins_of(communicator, topology.spec())) {
    transfers.push_back(topology.plan(kind, bytes, twin, network::Algorithm::kAuto, form));
  }
  const auto time = [&](const Transfer& transfer) { return topology.solo_time(transfer); };
  const auto [fastest, slowest] = std::ranges::minmax(transfers | std::views::transform(time));
  if (transfers.size() > 1) share_links(topology, transfers);
  return {*std::ranges::max_element(transfers, {}, time),
          fastest == slowest ? Twins::kAlike : Twins::kApart};
}

}  // namespace bubblesim::synth
