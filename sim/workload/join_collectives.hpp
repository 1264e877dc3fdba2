// Makes one collective of the kernels that meet (find_meetings).
#pragma once

#include <vector>

#include "sim/workload/find_meetings.hpp"
#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

[[nodiscard]] RankParts collective_parts(const Draft& draft);

/// Joins the collectives of all ranks. Sets each joined operation's duration to its end minus the
/// last rank's start; a send that did not wait for its receive, because its start was laid out
/// (traces/inferred_layout.hpp) or because it ended before, keeps its own. What meets nobody is
/// counted: a loss, by rank and kind, with its share of the communication time; a notice where no
/// rank that it could meet was recorded. `program.ranks` were emitted from the drafts of `ranks`,
/// in the same order.
void join_collectives(const std::vector<RankParts>& ranks, JobProgram& program);

}  // namespace bubblesim::workload
