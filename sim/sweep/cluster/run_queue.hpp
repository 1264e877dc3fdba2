// Which runs wait, who has which, which are done. Knows nothing of messages. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/store/planned_run.hpp"

namespace bubblesim::sweep {

/// The rank that plans; its own threads take runs too.
inline constexpr int kLeaderRank = 0;

/// Lost so often with the rank that was at it, a run is given up: it may be what ends ranks.
inline constexpr std::uint32_t kMostLosses = 2;
/// Given out so often without an end, for whatever reason, a run is given up.
inline constexpr std::uint32_t kMostReturns = 6;

class RunQueue {
 public:
  /// Refers to `runs`, whose indices ascend.
  explicit RunQueue(const std::vector<store::PlannedRun>& runs);

  /// Runs for a worker: `idle`, and `spare` more while others will not be short of them for it.
  [[nodiscard]] std::vector<const store::PlannedRun*> give(int rank, std::size_t idle,
                                                           std::size_t spare);
  /// Waits, in a thread of the leader, until there is a run; null: there will be none. A run with
  /// which a worker was lost is only given when no worker is left: it might take the leader too.
  [[nodiscard]] const store::PlannedRun* wait_for_run();

  /// How many threads work for a rank, the leader too; 0: it is lost, or takes no further run.
  void set_threads(int rank, std::size_t threads);
  /// Nothing is given out any more.
  void stop();

  /// The planned run, if `rank` (or whoever had it before) ends it first; null: it is done already,
  /// or no run has this index.
  [[nodiscard]] const store::PlannedRun* finish(std::uint64_t index);
  /// What `rank` was given, and neither has by its own words nor has finished, waits again.
  /// Returns the runs that are given up for it; they count as done.
  [[nodiscard]] std::vector<const store::PlannedRun*> has_only(int rank,
                                                        const std::set<std::uint64_t>& held);
  /// The rank is gone: what it had waits again, and those it was at are counted as lost with it:
  /// of what it had, the first, as many as it has threads. Returns as has_only().
  [[nodiscard]] std::vector<const store::PlannedRun*> lose(int rank);

  /// Null: no run has this index.
  [[nodiscard]] const store::PlannedRun* planned(std::uint64_t index) const;
  [[nodiscard]] bool all_done() const;
  /// Runs given out and not done.
  [[nodiscard]] std::size_t held() const;
  [[nodiscard]] std::size_t held_by(int rank) const;

 private:
  using Place = std::size_t;  // in runs_
  struct State {
    bool done = false;
    std::uint8_t losses = 0;
    std::uint8_t returns = 0;
  };

  // All under the lock.
  [[nodiscard]] std::optional<Place> take(bool suspects);
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] bool has_workers() const;
  [[nodiscard]] bool give_back(Place place);
  [[nodiscard]] std::optional<Place> place_of(std::uint64_t index) const;
  void mark_done(Place place);

  const std::vector<store::PlannedRun>& runs_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  Place next_ = 0;                // all from here on were never given out
  std::deque<Place> returned_;    // to be given before those
  std::deque<Place> suspects_;    // a rank was lost with them
  std::map<int, std::vector<Place>> held_;  // in the order in which they were given
  std::map<int, std::size_t> threads_;
  std::size_t done_ = 0;
  bool stopped_ = false;
};

}  // namespace bubblesim::sweep
