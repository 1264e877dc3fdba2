#include "sim/observe/run_result.hpp"

#include <algorithm>

namespace bubblesim::observe {

const char* filler_mode_name(FillerMode mode) {
  switch (mode) {
    case FillerMode::kOffline: break;
    case FillerMode::kOnline: return "online";
    case FillerMode::kJobs: return "jobs";
  }
  return "offline";
}

std::size_t FillerResult::admitted_gpus() const {
  return static_cast<std::size_t>(
      std::count_if(instances.begin(), instances.end(),
                    [](const InstanceResult& instance) { return instance.admitted; }));
}

}  // namespace bubblesim::observe
