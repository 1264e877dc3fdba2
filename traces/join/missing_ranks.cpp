#include "traces/join/missing_ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace bubblesim::traces {
namespace {

constexpr std::uint64_t kMostListed = 16;

}  // namespace

void count_missing_ranks(JobTrace& job) {
  std::uint32_t world = job.ranks.back().rank + 1;
  for (RankTrace& rank : job.ranks) {
    world = std::max(world, rank.world_size);
    rank.counters.reset(kRanksMissing, 0);
  }
  std::string list;
  std::uint64_t missing = 0;
  auto next = job.ranks.begin();
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (next != job.ranks.end() && next->rank == rank) {
      ++next;
      continue;
    }
    if (missing < kMostListed) list += (missing == 0 ? "" : ", ") + std::to_string(rank);
    ++missing;
  }
  if (missing == 0) return;
  if (missing > kMostListed) list += ", ...";
  job.ranks.front().counters.add(
      kRanksMissing.name,
      {kRanksMissing.severity,
       std::string(kRanksMissing.help) + ": " + list + " of " + std::to_string(world), missing});
}

}  // namespace bubblesim::traces
