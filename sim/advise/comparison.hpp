// Beside the recommended setting: why others lost, known errors, and how to put it in practice.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/advise/advice.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::advise {

/// "it keeps 0.975 of training, 0.005 below the limit": how a setting lost to the best.
[[nodiscard]] std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits);

/// Limits a little looser, each with the text of what is looser: "keep 0.95".
[[nodiscard]] std::vector<std::pair<std::string, Limits>> looser_limits(const Limits& limits);

/// For each limit that the result breaks, the value that it would keep: "keep 0.953, p95 63.1 ms";
/// empty: it keeps all.
[[nodiscard]] std::string needed_limits(const TrialResult& result, const Limits& limits);
/// "breaks keep, p95"; empty: it keeps all.
[[nodiscard]] std::string broken_limits(const TrialResult& result, const Limits& limits);

/// A setting that gains so many times as much as the best is reported.
inline constexpr double kWorthTelling = 1.05;

/// Policies that the system cannot run, and that would keep the limits and gain at least 5 % more.
[[nodiscard]] std::vector<Tried> worth_having(const Advice& advice);

/// "12.3 ms".
[[nodiscard]] std::string milliseconds(Duration span);

// What puts a recommendation into practice: lines for `run`, `measure` and `fill`.

struct Practice {
  std::string word;     ///< "simulate", "measure", "live"
  std::string command;  ///< for a shell, in the folder that `config` is relative to
  std::string note;     ///< what is not as recommended; may be empty
};

/// Nothing where nothing is recommended. `config`: the file of the recommendation's run config.
[[nodiscard]] std::vector<Practice> practice_of(const Advice& advice, const std::string& config);

// How far the simulator was from measurements under a policy: configs/validation/errors.csv, whose
// figures are those of docs/validation.md.

/// The rows of a policy, in the order of the file; none: nothing was measured under it. `device`:
/// the name that a device file has, of the device that is asked about.
[[nodiscard]] CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                                  const std::string& policy,
                                                                  const std::string& device);

}  // namespace bubblesim::advise
