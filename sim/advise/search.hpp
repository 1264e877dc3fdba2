// The search for the setting that gains most within the limits.
//
// Successive halving over simulated time: all starts are tried for a short time, the best quarter
// for three times as long, and so on; the best setting of each policy is kept until the last step,
// for some policies need time to settle. Then the largest load of each, and local searches about
// the best of different policies: one dimension at a time, in ever smaller steps, and what helped
// together. Then what leads is simulated at full length, under other seeds and with durations that
// are 5 % off; a setting that breaks a limit there makes way for the next, or for less load.
//
// Its budget is work, not time: events of the simulations, of which a second on two cores has
// kEventsPerSecond. So the same question has the same answer on every machine, however many threads
// it has, and on slow ones it takes longer. Where a full search would be too much, all simulated
// times are shortened alike.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/space.hpp"

namespace bubblesim::advise {

/// Events that two cores simulate in a second: between 20 and 40 million, by job and load (Release,
/// Intel Xeon, November 2026); some of a second goes into loading the job.
inline constexpr double kEventsPerSecond = 16e6;

/// How long a full trial is, at most.
struct FullLength {
  Duration length{};
  Duration warmup{};
  Duration shortest{};  ///< of any trial's measured part: some iterations of training
  std::uint64_t seed = 1;
};

/// A result for each trial, in order; they may be done on any number of threads.
using TryAll = std::function<Result<std::vector<TrialResult>>(const std::vector<Trial>&)>;

/// A setting and what it showed.
struct Tried {
  Proposal proposal;
  TrialResult result;
  bool available = true;  ///< it could be recommended
  Duration length{};      ///< simulated
};

/// How a setting did when it was simulated again.
struct Confirmation {
  std::vector<TrialResult> seeds;     ///< other seeds
  std::vector<TrialResult> slower;    ///< training's durations 5 % longer
  std::vector<TrialResult> faster;    ///< and shorter
  std::size_t broke = 0;              ///< of the seeds, how many broke a limit
};

/// How often another seed is expected to break a limit: Laplace's rule, (broke + 1) / (seeds + 2).
[[nodiscard]] double break_rate(const Confirmation& confirmed);

/// What the search found.
struct Found {
  std::optional<Tried> best;          ///< nothing: no setting keeps the limits
  Confirmation confirmed;             ///< of `best`
  std::optional<Tried> runner_up;     ///< the best setting of another policy
  std::optional<Tried> least;         ///< without a best: least beyond the limits
  std::vector<Tried> bounds;          ///< oracles, each at its best place
  std::vector<Tried> out_of_reach;    ///< the best setting of each policy that cannot be had
  std::vector<Tried> all;             ///< each setting's longest trial, in order of its first
  Duration length{};                  ///< simulated of a full trial
  Duration warmup{};
  std::size_t trials = 0;
  double events = 0;
  bool shortened = false;             ///< the budget did not allow the full length
};

struct SearchOptions {
  Limits limits;
  FullLength full;
  double gpus = 1;                        ///< simulated, that training loses a share of
  double events = 60 * kEventsPerSecond;  ///< the budget
  std::function<bool()> stopped;          ///< true: come to an end
};

inline constexpr std::size_t kSeedsConfirmed = 5;
inline constexpr double kDurationsVaried = 0.05;

[[nodiscard]] Result<Found> search(const Space& space, const TryAll& try_all,
                                   const SearchOptions& options);

}  // namespace bubblesim::advise
