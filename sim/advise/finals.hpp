// The last step of a search: from trials of the searched length to the answer.
//
// The leading settings are simulated at the length that was asked for, best first, until the best
// setting has been simulated so. If it keeps the limits, it is confirmed under other seeds
// (confirmation.hpp); if not, the next one, or less load, takes its place. The runner-up, the best
// setting that the user's tool takes, those of looser limits and those that the system cannot have
// are simulated at that length before they are told; if one of them is within the limits and
// better, it is confirmed and takes the place of the best.
#pragma once

#include "sim/advise/trial_log.hpp"

namespace bubblesim::advise {

/// Is the budget less than the shortest trials of a whole search take? Then fewer settings come
/// into the finals.
enum class Scarce : std::uint8_t { kNo, kYes };

/// A search that is stopped has the best of its trials, unconfirmed.
[[nodiscard]] Result<Found> finals(const Space& space, TrialLog& log, const SearchOptions& options,
                                   Scarce scarce);

}  // namespace bubblesim::advise
