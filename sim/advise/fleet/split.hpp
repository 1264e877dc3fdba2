// How much of each kind of job goes to each work of a queue: a linear programme, solved exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace bubblesim::advise {

struct SplitProblem {
  std::vector<double> hours;                ///< by kind: hours of a GPU that there are, >= 0
  std::vector<std::optional<double>> left;  ///< by work: requests to be done; nothing: no end
  std::vector<std::vector<double>> value;   ///< by kind, work: of an hour; below 0: not worth it
  std::vector<std::vector<double>> done;    ///< likewise: requests in an hour, >= 0
};

/// The hours of each kind (first index) that each work gets. Among all splits that use no more
/// hours than there are and do no more than is left, one of the greatest value. Deterministic.
///
/// Simplex method on a dense tableau with Bland's rule, which never cycles (R. G. Bland, "New
/// Finite Pivoting Rules for the Simplex Method", 1977): few pairs of a kind and a work are used,
/// at most as many as there are kinds and works with an end.
[[nodiscard]] std::vector<std::vector<double>> best_split(const SplitProblem& problem);

}  // namespace bubblesim::advise
