// Finds which collective kernels of different ranks are one collective.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

/// An operation that takes part in a collective: all that joining needs of a rank's draft, so that
/// only one rank's draft is held at a time.
struct CollectivePart {
  std::uint32_t op = 0;  ///< into Program::ops
  const traces::Collective* collective = nullptr;
  TraceTime start{};         ///< as drafted
  TraceTime end{};
  TraceTime recorded_end{};
};

struct RankParts {
  const traces::RankTrace* trace = nullptr;
  std::vector<CollectivePart> parts;  ///< by recorded end
};

[[nodiscard]] RankParts collective_parts(const Draft& draft);

/// Joins the collectives of all ranks: by group and recorded sequence; where none was recorded,
/// by kind and order. Sets each joined operation's duration to its end minus the last rank's
/// start; a send whose start was laid out (traces/inferred_layout.hpp) waits for nobody and keeps
/// its own. `program.ranks` were emitted from the drafts of `ranks`, in the same order.
void join_collectives(const std::vector<RankParts>& ranks, JobProgram& program);

}  // namespace bubblesim::workload
