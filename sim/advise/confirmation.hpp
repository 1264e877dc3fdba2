// One setting simulated again: under other seeds, or, where no seed changes anything, in longer
// windows; and with training's durations off by 5 %.
#pragma once

#include "sim/advise/trial_log.hpp"

namespace bubblesim::advise {

/// Simulates the setting under other seeds at the length that was asked for. Two of them come
/// first: if both give the figures of `setting`, nothing in the run is random, and windows up to
/// twice as long take the place of the rest. There, figures may be 0.1 % beyond a limit, for a
/// window begins and ends within iterations.
[[nodiscard]] Result<Confirmation> confirm(const Tried& setting, const Limits& limits,
                                           TrialLog& log);

/// Adds what 5 % longer and shorter durations of training do.
[[nodiscard]] Result<void> vary_durations(const Proposal& proposal, TrialLog& log,
                                          Confirmation& confirmed);

}  // namespace bubblesim::advise
