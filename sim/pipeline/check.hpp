// Checks that a table is a schedule, and finds an order in which its actions can run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {

inline constexpr std::size_t kMaxFaults = 20;

/// Empty if `schedule` is valid on `graph`: its stages and ranks exist; every stage does each of
/// its micro-batches once forward and once backward (B, or I and W) and no others, on its own rank;
/// and no deadlock occurs. A deadlock is reported with each waiting rank, its next action, and the
/// awaited value. `place` of an error is "rank 2, action 5" (both from 0).
[[nodiscard]] Errors check(const Schedule& schedule, const StageGraph& graph);

/// The graph of a schedule that comes without one: two directions if stage n/2+i sits on rank
/// n/2-1-i and the halves share no micro-batch, else a chain.
[[nodiscard]] StageGraph infer_graph(const Schedule& schedule);

// Finds an order in which a schedule's actions can run: each rank's in its own order, each action
// after its inputs. Shared by check() (does the schedule end?) and execute.hpp (when?).
//
// F waits for the forwards of all producers, I and B for the own forward and for the input
// gradients of all consumers, W for the own I, an overlapped pair for both of its parts.
// Complexity: linear in actions and edges.

/// The kinds of values that other actions wait for.
enum class Product : std::uint8_t { kForward, kInputGrad };

/// A value of one micro-batch on one stage.
struct ProductRef {
  Product product = Product::kForward;
  std::uint32_t stage = 0;
  std::uint32_t micro_batch = 0;
};

/// Dense indices of the (stage, micro-batch) pairs of a graph.
class CellIndex {
 public:
  explicit CellIndex(const StageGraph& graph);
  /// Precondition: the graph has the pair.
  [[nodiscard]] std::size_t index(std::uint32_t stage, std::uint32_t micro_batch) const {
    return begin_[stage] + (micro_batch - graph_->stages[stage].first_micro_batch);
  }
  [[nodiscard]] bool holds(std::uint32_t stage, std::uint32_t micro_batch) const;
  [[nodiscard]] std::size_t size() const { return begin_.back(); }

 private:
  const StageGraph* graph_;
  std::vector<std::size_t> begin_;
};

/// Calls `visit(ProductRef)` for every value that `action` waits for.
template <class Visit>
void for_each_input(const Action& action, const StageGraph& graph, Visit&& visit) {
  const auto across = [&](Product product, std::uint32_t stage, std::uint32_t micro_batch,
                          const std::vector<std::uint32_t>& others) {
    for (const std::uint32_t other : others) {
      const auto [first, last] =
          overlapping(graph.stages[stage], micro_batch, graph.stages[other]);
      for (std::uint32_t k = first; k < last; ++k) visit(ProductRef{product, other, k});
    }
  };
  if (action.has_forward()) {
    across(Product::kForward, action.stage, action.micro_batch,
           graph.stages[action.stage].producers);
  }
  const std::uint32_t stage = action.backward_stage();
  const std::uint32_t micro_batch = action.backward_micro_batch();
  if (action.has_input_grad()) {
    visit(ProductRef{Product::kForward, stage, micro_batch});
    across(Product::kInputGrad, stage, micro_batch, graph.stages[stage].consumers);
  }
  if (action.kind == ActionKind::kWeightGrad) {
    visit(ProductRef{Product::kInputGrad, stage, micro_batch});
  }
}

struct WalkStep {
  std::uint32_t rank = 0;
  std::uint32_t position = 0;  ///< in the rank's list
};

/// A blocked rank: its next action, and the first value that this action waits for.
struct StuckHead {
  WalkStep step;
  ProductRef missing;
};

struct Walk {
  std::vector<WalkStep> order;   ///< every action after all of its inputs
  std::vector<StuckHead> stuck;  ///< by rank; empty if all actions ran
};

/// Precondition: every action names a (stage, micro-batch) of the graph, as check() verifies.
[[nodiscard]] Walk walk(const Schedule& schedule, const StageGraph& graph);

}  // namespace bubblesim::pipeline
