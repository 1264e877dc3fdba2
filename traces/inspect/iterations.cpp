#include "traces/inspect/iterations.hpp"

#include <algorithm>

namespace bubblesim::traces {

Iterations iterations_of(const RankPass& pass, const DeviceUse& use) {
  Iterations iterations;
  iterations.marked = pass.marked;
  iterations.used = pass.count;
  iterations.host_time = pass.host_time;
  iterations.device_time = pass.device_time;
  iterations.length = pass.length;
  for (const RecordedIteration& recorded : pass.recorded) {
    Iteration iteration;
    iteration.number = pass.marked ? recorded.number : -1;
    iteration.span = recorded.host;
    iteration.use = recorded.use;
    iteration.busy = total_length(clip(use.busy, iteration.span));
    iteration.own = total_length(clip(use.own, iteration.span));
    iterations.all.push_back(iteration);
  }
  return iterations;
}

Duration Iterations::steady_mean() const {
  return used == 0 ? Duration{} : length / static_cast<std::int64_t>(used);
}

Duration Iterations::shortest() const {
  Duration least = all.empty() ? Duration{} : Duration::max();
  for (const Iteration& iteration : all) least = std::min(least, iteration.span.length());
  return least;
}

Duration Iterations::longest() const {
  Duration most{};
  for (const Iteration& iteration : all) most = std::max(most, iteration.span.length());
  return most;
}

}  // namespace bubblesim::traces
