// What a trace says of each collective of a job: its process group and its number in it, and the
// ends of a transfer. Internal to record_trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/job_program.hpp"

namespace bubblesim::synth {

struct CollectiveLabel {
  std::string group;
  std::uint64_t number = 0;       ///< within the group, from 0
  std::uint64_t in_group = 1;     ///< collectives of the group a pass
  std::uint32_t from = program::kNoIndex;  ///< transfers: rank numbers
  std::uint32_t to = program::kNoIndex;
};

/// One a collective. A group without a name is named by what it holds; a transfer whose ends are
/// not known goes from the first of its ranks, in the job's order, to the second.
[[nodiscard]] std::vector<CollectiveLabel> label_collectives(const workload::JobProgram& job);

}  // namespace bubblesim::synth
