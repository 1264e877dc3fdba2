#include "sim/run/slow_links.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bubblesim::run {
namespace {

using network::Direction;
using network::LinkId;

/// The links out of, or into, a GPU, its node, leaf or region; none: the cluster has none of this
/// kind.
std::vector<LinkId> links_of(const LinkFault& fault, const network::Topology& topology,
                             Direction direction) {
  const hardware::ClusterSpec& cluster = topology.spec();
  const std::uint32_t node = topology.node_of(fault.gpu);
  std::vector<LinkId> out;
  switch (fault.kind) {
    case LinkFault::Kind::kPort:
      out.push_back(topology.port(fault.gpu, direction));
      if (cluster.node.kind == hardware::NodeLink::kPairs) {
        out.push_back(topology.pair_port(fault.gpu, direction));
      }
      break;
    case LinkFault::Kind::kNic:
      if (cluster.nics.count > 0) out.push_back(topology.nic(fault.gpu, direction));
      break;
    case LinkFault::Kind::kLeaf:
      if (cluster.nodes <= cluster.tree.nodes_per_leaf) break;
      for (std::uint32_t i = 0; i < topology.uplinks(); ++i) {
        out.push_back(topology.leaf(node, direction, i));
      }
      break;
    case LinkFault::Kind::kRegion:
      if (cluster.regions) out.push_back(topology.region(node, direction));
      break;
  }
  return out;
}

bool is_loaded(const workload::JobProgram& job, LinkId link) {
  return std::ranges::any_of(job.transfers, [&](const network::Transfer& transfer) {
    return std::ranges::any_of(transfer.loads,
                               [&](const network::LinkLoad& load) { return load.link == link; });
  });
}

bool overlap(const network::SlowLink& a, const network::SlowLink& b) {
  return a.link == b.link && a.from < b.until && b.from < a.until;
}

/// Adds a fault's links to `out`; what is wrong with it, in words: empty if nothing is.
std::string add_links(const LinkFault& fault, const network::Topology& topology,
                      const workload::JobProgram& job, std::vector<network::SlowLink>& out) {
  const std::uint32_t gpus = topology.spec().gpus();
  if (fault.gpu >= gpus) {
    return "found GPU " + std::to_string(fault.gpu) + "; the cluster has GPUs 0 to " +
           std::to_string(gpus - 1);
  }
  bool loaded = false;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const std::vector<LinkId> links = links_of(fault, topology, direction);
    if (links.empty()) {
      return "the cluster has no link of this kind; expected one that its file describes";
    }
    for (const LinkId link : links) {
      const network::SlowLink slow{link, fault.slowdown, kSimStart + fault.from,
                                   fault.until ? kSimStart + *fault.until : SimTime::max()};
      const auto same = [&](const network::SlowLink& other) { return overlap(slow, other); };
      if (std::ranges::any_of(out, same)) {
        return "the same link is slow already at that time; expected a span of its own";
      }
      loaded = loaded || is_loaded(job, link);
      out.push_back(slow);
    }
  }
  return loaded ? "" : "no collective of the job passes over this link; expected one that it uses";
}

}  // namespace

CheckedResult<std::vector<network::SlowLink>> slow_links(const RunConfig& config,
                                                         const network::Topology& topology,
                                                         const workload::JobProgram& job) {
  std::vector<network::SlowLink> out;
  Errors errors;
  for (std::size_t i = 0; i < config.training.slow_links.size(); ++i) {
    const std::string wrong = add_links(config.training.slow_links[i], topology, job, out);
    if (wrong.empty()) continue;
    errors.push_back({config.file, "/training/slow_links/" + std::to_string(i), wrong});
  }
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return out;
}

}  // namespace bubblesim::run
