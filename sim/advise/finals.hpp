// The last step of a search: from the trials of the searched length to what is told.
//
// What leads is simulated at the length that was asked for, best first, until the best of all is
// one that was; a setting that keeps the limits there is confirmed under other seeds
// (confirmation.hpp), and one that does not makes way for the next, or for less load. The
// runner-up, the best setting that the user's tool takes, those of looser limits and those that
// the system cannot have are simulated at that length before they are told; if one of them is
// within the limits and better, it is confirmed and takes the place of the best.
#pragma once

#include "sim/advise/trial_log.hpp"

namespace bubblesim::advise {

/// Whether the budget has not even the shortest trials of a whole search: then fewer settings come
/// into the finals.
enum class Scarce : std::uint8_t { kNo, kYes };

/// A search that is stopped has the best of its trials, unconfirmed.
[[nodiscard]] Result<Found> finals(const Space& space, TrialLog& log, const SearchOptions& options,
                                   Scarce scarce);

}  // namespace bubblesim::advise
