// Finds which collective kernels of different ranks are one collective.
#pragma once

#include <vector>

#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

/// Joins the collectives of all ranks: by group and recorded sequence; where none was recorded,
/// by kind and order. Sets each joined operation's duration to its end minus the last rank's
/// start. `program.ranks` were emitted from `drafts`, in the same order.
void join_collectives(const std::vector<Draft>& drafts, JobProgram& program);

}  // namespace bubblesim::workload
