// Settings beside the recommended one: why they lost, what looser limits would allow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/advise/advice.hpp"

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

}  // namespace bubblesim::advise
