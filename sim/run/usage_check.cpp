#include "sim/run/usage_check.hpp"

#include <algorithm>
#include <string>

#include "sim/base/units.hpp"

namespace bubblesim::run {

observe::UsageSetup usage_setup(const LoadedRun& loaded, Duration interval) {
  const std::uint64_t policies = std::max<std::uint64_t>(1, loaded.config.policies.size());
  const std::uint64_t gpus = std::max<std::uint64_t>(1, loaded.training->ranks.size());
  return {.interval = interval, .most = observe::kMostUsageIntervals / (policies * gpus)};
}

Result<void> check_usage(const LoadedRun& loaded, Duration interval, Duration length) {
  if (interval <= Duration::zero()) return {};
  const observe::UsageSetup setup = usage_setup(loaded, interval);
  const Duration warmup = loaded.config.warmup;
  const std::uint64_t count =
      observe::UsageGrid(interval, kSimStart + warmup).count(kSimStart + length);
  if (count <= setup.most) return {};
  const auto least = observe::least_usage_interval(length, warmup, setup.most);
  return fail({}, "usage interval",
              "found " + format_duration(interval) + ", expected " +
                  (least ? format_duration(*least) + " or more" : "a run of fewer GPUs") + ": " +
                  format_duration(length) + " of " + std::to_string(loaded.training->ranks.size()) +
                  " GPUs under " + std::to_string(loaded.config.policies.size()) +
                  " policies would be more than " +
                  std::to_string(observe::kMostUsageIntervals) + " intervals");
}

}  // namespace bubblesim::run
