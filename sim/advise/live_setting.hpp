// The setting that `bubblesim fill` takes where it refuses the recommended one.
#pragma once

#include <functional>
#include <optional>

#include "sim/advise/advice.hpp"
#include "sim/advise/trials.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::advise {

/// The best of what the search tried that `takes` accepts and that keeps the limits at full length
/// and under the seeds that recommendations are confirmed by. `full`: a trial of full length, whose
/// proposal does not count. Nothing: none was found among the best few.
[[nodiscard]] Result<std::optional<Tried>> best_live_setting(
    const Advice& advice, const std::function<bool(const Proposal&)>& takes, const Trial& full,
    Trials& trials);

}  // namespace bubblesim::advise
