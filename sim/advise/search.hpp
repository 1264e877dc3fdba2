// The search for the setting that gains most within the limits.
//
// Successive halving over simulated time: all first settings are tried for a short time, the best
// quarter for three times as long, and so on. The best setting of each policy is kept until the
// last step, since some policies gain late. Each trial warms up until its policy has settled. Then
// the search finds the largest load of each policy, and changes the best settings of different
// policies one dimension at a time, in ever smaller steps, then in all dimensions that helped. The
// leading setting is simulated again at the length that the user asked for, under other seeds and
// with durations 5 % off; if it breaks a limit there, the next setting or a smaller load takes its
// place.
//
// The budget counts events of the simulations, kEventsPerSecond for a second on two cores. So the
// same question has the same answer on every machine and any number of threads; slow machines take
// longer. If a full search would spend too much, all its steps simulate proportionally less time.
// The budget is planned before the search: half of it is for the search, half for confirming its
// results, at the length that this half allows. If the user asked for a length, the search has all
// of the budget, and confirming comes on top. A trial that would spend more than planned is not
// run: the least promising trials are left out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/space.hpp"

namespace bubblesim::advise {

/// Events that two cores simulate in a second: measured 20 to 40 million, by job and load (Release,
/// Intel Xeon); less here, since loading the job takes time, too.
inline constexpr double kEventsPerSecond = 16e6;

/// Bounds of the length of a full trial.
struct FullLength {
  Duration length{};
  Duration warmup{};
  Duration shortest{};  ///< of any trial: the least time that shows a gain
  std::uint64_t seed = 1;
  Duration iteration{};  ///< length of an iteration alone; some policies settle after a number of
                         ///< them
};

/// A policy that was not judged: it settles only after the warm-up that was asked for.
struct Unsettled {
  const policy::PolicySpec* policy = nullptr;
  Duration settling{};
};

/// A policy that was not judged: each trial of it would have exceeded the budget.
struct Unafforded {
  const policy::PolicySpec* policy = nullptr;
  double events = 0;  ///< of its cheapest trial
};

/// The most that a search will simulate, known before its first step.
struct SearchPlan {
  Duration searched{};             ///< the longest trial of the search
  Duration length{};               ///< of the runs that confirm results
  double search_events = 0;
  double confirmation_events = 0;
};

/// Runs the trials, on any number of threads; gives a result for each, in their order.
using TryAll = std::function<Result<std::vector<TrialResult>>(const std::vector<Trial>&)>;

/// A setting and its result.
struct Tried {
  Proposal proposal;
  TrialResult result;
  bool available = true;  ///< whether it may be recommended
  Duration length{};      ///< simulated
  Duration warmup{};      ///< of `length`, the warm-up
  [[nodiscard]] Duration measured() const { return length - warmup; }
};

/// The results of simulating a setting again.
struct Confirmation {
  std::vector<TrialResult> seeds;     ///< under other seeds
  std::vector<TrialResult> windows;   ///< longer runs, if seeds change nothing
  std::vector<TrialResult> slower;    ///< training's durations 5 % longer
  std::vector<TrialResult> faster;    ///< and 5 % shorter
  std::size_t broke = 0;              ///< number of the seeds and windows that broke a limit
  bool random = true;                 ///< false: other seeds give the same figures
};

/// The expected chance that another seed breaks a limit: Laplace's rule, (broke + 1) / (seeds + 2);
/// 0 if nothing is random and no limit broke.
[[nodiscard]] double break_rate(const Confirmation& confirmed);

/// A setting that broke a limit when it was simulated again.
struct Failed {
  Tried setting;
  Confirmation confirmed;
};

/// The best setting if a limit were looser.
struct Looser {
  std::string limit;  ///< "keep 0.95"
  Tried tried;
};

/// The result of a search.
struct Found {
  std::optional<Tried> best;          ///< nothing: no setting keeps the limits
  Confirmation confirmed;             ///< of `best`
  std::optional<Tried> runner_up;     ///< the best setting of another policy
  std::optional<Tried> live;          ///< if `takes` refuses `best`: the best setting it accepts
  /// The gaining setting that breaks the limits least; only if `best` is none or gains nothing.
  std::optional<Tried> least;
  std::vector<Failed> failed;         ///< kept the limits in the search, not when confirmed
  std::vector<Looser> looser;         ///< confirmed at full length; they gain 5 % more at least
  std::vector<Tried> bounds;          ///< oracles, each at its best place
  std::vector<Tried> out_of_reach;    ///< the best setting of each policy that is not available
  std::vector<Unsettled> unsettled;   ///< in order of their first trial
  std::vector<Unafforded> unafforded; ///< in order of their first trial
  bool exhausted = false;             ///< the budget did not suffice to confirm all results
  std::vector<Tried> all;             ///< each setting's longest trial, in order of first trials
  Duration length{};                  ///< of a full trial; longer for policies that must settle
  Duration warmup{};
  Duration searched{};                ///< the longest trial of the search before the last step
  Duration searched_warmup{};         ///< its warm-up
  [[nodiscard]] Duration measured() const { return length - warmup; }
  std::size_t trials = 0;
  double events = 0;
  double confirmation_events = 0;     ///< events of trials longer than `searched`
  /// Events of a search with the shortest trials that can be judged; 0: the budget covers it.
  double needed_events = 0;
  bool shortened = false;             ///< the budget did not allow the full length to be searched
};

struct SearchOptions {
  Limits limits;
  FullLength full;
  double gpus = 1;                        ///< simulated GPUs; training's loss is a share of these
  double events = 60 * kEventsPerSecond;  ///< the budget
  ConfirmedAt confirmed_at = ConfirmedAt::kAskedLength;
  /// Whether the user's next tool accepts a setting. If it refuses the best one, the search also
  /// looks for the best setting that the tool accepts. Empty: no tool.
  std::function<bool(const Proposal&)> takes = nullptr;
  const std::atomic<bool>* stop = nullptr;  ///< set to true to end the search; null: never
  std::function<void(const SearchPlan&)> planned = nullptr;  ///< called before the search begins
};

inline constexpr std::size_t kSeedsConfirmed = 5;
inline constexpr double kDurationsVaried = 0.05;

[[nodiscard]] inline bool is_stopped(const SearchOptions& options) {
  return options.stop != nullptr && *options.stop;
}

[[nodiscard]] Result<Found> search(const Space& space, const TryAll& try_all,
                                   const SearchOptions& options);

}  // namespace bubblesim::advise
