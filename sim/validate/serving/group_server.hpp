// A server with its GPUs to itself, of one member or of several that split the requests and step
// together (data-parallel attention whose experts are spread over the members).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/step_cost/engine_cost.hpp"

namespace bubblesim::validate {

/// What became of a request.
struct SimulatedRequest {
  SimTime queued{};  ///< the engine's loop took it: the end of the step that ran at its arrival
  serving::FinishedRequest finished;
};

struct ServedLoad {
  std::vector<SimulatedRequest> requests;  ///< in the order of the requests given
  SimTime end{};
  std::uint64_t steps = 0;  ///< of the group
  serving::SchedulerCounts counts;  ///< sums over the members
};

/// Serves `requests`, which are ordered by arrival and numbered from 0 on; each is admissible.
/// Among several members, a request goes to that of the least 4 x waiting + running, the first of
/// equals (vLLM's DPLBAsyncMPClient); a step of the group lasts as long as its slowest member's.
[[nodiscard]] ServedLoad serve_group(const serving::SchedulerSpec& spec, std::uint32_t members,
                                     std::span<const serving::Request> requests,
                                     step_cost::EngineCost& cost);

}  // namespace bubblesim::validate
