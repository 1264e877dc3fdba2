// What `bubblesim sweep --dry-run` says: how many runs, how long, how much memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/sweep/estimate.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/remaining.hpp"

namespace bubblesim::app {

struct SweepForecast {
  sweep::RunCost cost;
  Duration a_run{};         ///< the store's mean if it has runs of the sweep, else the measured
  bool from_store = false;
  std::size_t threads = 1;
  Duration all{};
  std::uint64_t memory = 0;  ///< bytes
};

/// Measures some of the runs that are left.
[[nodiscard]] SweepForecast forecast(const sweep::RemainingRuns& left,
                                     const sweep::ExecuteOptions& options,
                                     const policy::Registry& policies);

struct ForecastSubject {
  std::string sweep;
  std::string store;
  std::size_t points = 0;
  std::size_t runs = 0;
  std::size_t in_shard = 0;
  std::size_t repeated = 0;
};

[[nodiscard]] std::string forecast_text(const ForecastSubject& subject,
                                        const sweep::RemainingRuns& left,
                                        const SweepForecast& cast);
/// One line.
[[nodiscard]] std::string forecast_json(const ForecastSubject& subject,
                                        const sweep::RemainingRuns& left,
                                        const SweepForecast& cast);

}  // namespace bubblesim::app
