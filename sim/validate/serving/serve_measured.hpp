// The requests of a measured run on its simulated server: what becomes of each, as JSON. The
// module `bubblesim` hands it to the judge (notebooks/lab/serving.py).
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
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

}  // namespace bubblesim::validate
