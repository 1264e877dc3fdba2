#include "sim/synth/collective_labels.hpp"

#include <map>

namespace bubblesim::synth {
namespace {

std::string group_name(const workload::JobProgram& job, const workload::JoinedCollective& joined) {
  if (joined.group != program::kNoIndex) return job.groups[joined.group];
  if (joined.point_to_point) return "transfers";
  if (joined.participants == job.ranks.size()) return "world";
  return "groups of " + std::to_string(joined.participants);
}

void find_ends(const workload::JobProgram& job, std::vector<CollectiveLabel>& labels) {
  for (const program::Program& rank : job.ranks) {
    for (const program::Op& op : rank.ops) {
      if (op.collective == program::kNoIndex) continue;
      if (!job.collectives[op.collective].point_to_point) continue;
      if (job.collectives[op.collective].from != program::kNoIndex) continue;
      CollectiveLabel& label = labels[op.collective];
      (label.from == program::kNoIndex ? label.from : label.to) = rank.rank;
    }
  }
}

}  // namespace

std::vector<CollectiveLabel> label_collectives(const workload::JobProgram& job) {
  std::vector<CollectiveLabel> labels;
  std::map<std::string, std::uint64_t> counts;
  labels.reserve(job.collectives.size());
  for (const workload::JoinedCollective& joined : job.collectives) {
    CollectiveLabel label;
    label.group = group_name(job, joined);
    label.number = counts[label.group]++;
    label.from = joined.from;
    label.to = joined.to;
    labels.push_back(std::move(label));
  }
  for (CollectiveLabel& label : labels) label.in_group = counts[label.group];
  find_ends(job, labels);
  return labels;
}

}  // namespace bubblesim::synth
