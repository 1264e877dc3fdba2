// The requests of a measured run on its simulated server: what becomes of each, as JSON. The
// module `bubblesim` hands it to the judge (notebooks/lab/serving.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/serving/scheduler.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/validate/serving/server_setup.hpp"

namespace bubblesim::validate {

/// Where the server's step times are from, besides the kernel model; paths, or empty.
struct ServeSources {
  std::string configs;
  std::string engine;  ///< a file of configs/engines
  std::string layers;
  std::string steps;   ///< empty where there are layers
};

/// `settings`: an object of server settings. Instants of the answer are nanoseconds since the first
/// arrival, of the requests in the order given; "queued_ns" is when the engine's loop took it.
[[nodiscard]] CheckedResult<Json> serve_measured(std::string_view settings,
                                                 const MeasuredLoad& load,
                                                 const ServeSources& sources);

// A server with its GPUs to itself, of one member or of several that split the requests and step
// together (data-parallel attention whose experts are spread over the members).

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
