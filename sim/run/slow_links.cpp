#include "sim/run/slow_links.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace bubblesim::run {
namespace {

using network::Direction;
using network::LinkId;

/// The link out of, or into, a GPU; nothing: the cluster has none of this kind.
std::optional<LinkId> link_of(const LinkFault& fault, const network::Topology& topology,
                              Direction direction) {
  const hardware::ClusterSpec& cluster = topology.spec();
  const std::uint32_t node = topology.node_of(fault.gpu);
  switch (fault.kind) {
    case LinkFault::Kind::kPort: return topology.port(fault.gpu, direction);
    case LinkFault::Kind::kNic:
      if (cluster.nics.count == 0) return std::nullopt;
      return topology.nic(fault.gpu, direction);
    case LinkFault::Kind::kLeaf:
      if (cluster.nodes <= cluster.tree.nodes_per_leaf) return std::nullopt;
      return topology.leaf(node, direction);
    case LinkFault::Kind::kRegion:
      if (!cluster.regions) return std::nullopt;
      return topology.region(node, direction);
  }
  return std::nullopt;
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
    const std::optional<LinkId> link = link_of(fault, topology, direction);
    if (!link) return "the cluster has no link of this kind; expected one that its file describes";
    const network::SlowLink slow{*link, fault.slowdown, kSimStart + fault.from,
                                 fault.until ? kSimStart + *fault.until : SimTime::max()};
    const auto same = [&](const network::SlowLink& other) { return overlap(slow, other); };
    if (std::ranges::any_of(out, same)) {
      return "the same link is slow already at that time; expected a span of its own";
    }
    loaded = loaded || is_loaded(job, *link);
    out.push_back(slow);
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
