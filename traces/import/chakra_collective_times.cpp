#include "traces/import/chakra_layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "traces/import/chakra_records.hpp"

namespace bubblesim::traces::chakra {
namespace {

using Ranks = std::vector<std::uint32_t>;

bool is_pair(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

class JobTimes {
 public:
  JobTimes(std::span<const RankFile> ranks, std::uint32_t world, const CollectiveTimes& times)
      : files_(ranks), times_(times), everybody_(world) {
    std::iota(everybody_.begin(), everybody_.end(), 0U);
  }

  Result<void> run() {
    find_groups();
    for (const RankFile& rank : files_) {
      for (ChakraNode& node : rank.file->nodes) {
        if (is_untimed(node, *rank.file)) BUBBLESIM_RETURN_IF_ERROR(give_time(node, rank));
      }
    }
    return {};
  }

 private:
  static bool is_untimed(const ChakraNode& node, const File& file) {
    return node.on_device() && node.duration_ns == 0 &&
           is_collective(node, file.trace.names[node.name]);
  }

  void find_groups() {
    std::map<std::string, std::set<std::uint32_t>> declared, used;
    for (const RankFile& rank : files_) {
      const StringTable& names = rank.file->trace.names;
      for (const ChakraGroup& group : rank.file->groups) {
        declared[names[group.name]].insert(group.ranks.begin(), group.ranks.end());
      }
      for (const ChakraNode& node : rank.file->nodes) {
        if (node.group && node.on_device()) used[names[*node.group]].insert(rank.rank);
      }
    }
    for (auto& [name, ranks] : used) {
      const std::set<std::uint32_t>& all = declared[name].empty() ? ranks : declared[name];
      members_[name] = Ranks(all.begin(), all.end());
    }
  }

  /// Empty: not known.
  Ranks ends_of(const ChakraNode& node, CollectiveKind kind, std::uint32_t rank) const {
    const bool sends = kind == CollectiveKind::kSend;
    const auto other = sends ? node.destination : node.source;
    if (!other || *other == rank) return {};
    return sends ? Ranks{rank, *other} : Ranks{*other, rank};
  }

  std::span<const std::uint32_t> members_of(const ChakraNode& node, const File& file) const {
    if (node.group) return members_.at(file.trace.names[*node.group]);
    if (node.involves_dims) return {};
    return everybody_;
  }

  Result<void> give_time(ChakraNode& node, const RankFile& rank) {
    CounterSet& counters = rank.file->trace.counters;
    UntimedCollective untimed{kind_of_node(node, rank.file->trace.names[node.name]),
                              node.comm_size, members_of(node, *rank.file),
                              static_cast<std::uint32_t>(everybody_.size())};
    const Ranks ends = ends_of(node, untimed.kind, rank.rank);
    if (is_pair(untimed.kind)) untimed.ranks = ends;
    if (node.group && untimed.ranks.size() == 1) return {};  // a group of one moves nothing
    const auto duration = time_of(untimed);
    if (!duration) return tl::unexpected<Error>(duration.error());
    node.duration_ns = to_ns(*duration);
    counters.add(node.duration_ns > 0 ? kCollectivesSimulated : kCollectivesUntimed);
    return {};
  }

  Result<Duration> time_of(const UntimedCollective& untimed) const {
    const bool known = untimed.ranks.size() > 1 &&
                       std::ranges::max(untimed.ranks) < everybody_.size();
    if (!times_ || !known) return Duration{};
    return times_(untimed);
  }

  std::span<const RankFile> files_;
  const CollectiveTimes& times_;
  Ranks everybody_;
  std::map<std::string, Ranks> members_;  ///< by the group's name
};

}  // namespace

Result<void> time_collectives(std::span<const RankFile> ranks, std::uint32_t world,
                              const CollectiveTimes& times) {
  return JobTimes(ranks, world, times).run();
}

}  // namespace bubblesim::traces::chakra
