// What each record of a rank depends on in a Chakra graph: launches, thread and stream order,
// edges, and what synchronising calls waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace bubblesim::traces::chakra {

/// Indices of device operations and host calls that a record follows.
struct Dependencies {
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> inferred_ops;  ///< of `ops`, those by an inferred edge
  std::vector<std::uint32_t> calls;
};

/// Answers for records in the order in which they are sorted: first come the calls.
class DependencyFinder {
 public:
  explicit DependencyFinder(const RankTrace& trace);

  /// A call follows the call before it on its thread; a synchronising call also the last
  /// operations launched before it on the streams it waits for.
  [[nodiscard]] Dependencies of_call(std::uint32_t call) const;
  /// An operation follows its launch, the operation before it on its stream, and its edges.
  [[nodiscard]] Dependencies of_op(std::uint32_t op) const;

 private:
  void find_stream_order();
  void find_call_order();
  void find_waits();

  const RankTrace& trace_;
  std::vector<std::uint32_t> previous_op_;    ///< by operation: on its stream
  std::vector<std::uint32_t> previous_call_;  ///< by call: on its thread
  std::vector<std::vector<std::uint32_t>> waits_;  ///< operations, by synchronising call
  std::vector<std::uint32_t> wait_index_;          ///< by call: into waits_
  std::vector<Edge> edges_;                        ///< by what comes after
};

}  // namespace bubblesim::traces::chakra
