// Settings beside the recommended one: why they lost, what looser limits would allow.
#pragma once

#include <string>
#include <vector>

#include "sim/advise/advice.hpp"

namespace bubblesim::advise {

/// "it keeps 0.975 of training, 0.005 below the limit": how a setting lost to the best.
[[nodiscard]] std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits);

/// The best setting of those tried if a limit were looser.
struct Looser {
  std::string limit;  ///< "keep 0.95"
  Tried tried;
};
/// Those that gain at least 5 % more than the recommendation.
[[nodiscard]] std::vector<Looser> with_looser_limits(const Advice& advice);

/// Policies that the system lacks something for, and that would keep the limits and gain at least
/// 5 % more.
[[nodiscard]] std::vector<Tried> worth_having(const Advice& advice);

/// "12.3 ms".
[[nodiscard]] std::string milliseconds(Duration span);

}  // namespace bubblesim::advise
