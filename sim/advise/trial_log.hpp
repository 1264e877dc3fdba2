// The trials of a search: how long they are, what they cost, and each setting's longest one.
//
// There are two lengths. Recommendations are confirmed at the length that was asked for. The
// searched length is shorter if the budget does not allow hundreds of full trials; trials of the
// search last a fraction of it.
//
// A trial that would exceed the allowance is not run. Its cost is estimated from trials of its
// policy, or else of the costliest policy.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/search.hpp"

namespace bubblesim::advise {

/// Limits stricter by `margin` for training's share and by 20 times `margin` for latencies, which a
/// short trial measures less precisely. A negative margin gives looser limits.
[[nodiscard]] Limits tightened(const Limits& limits, double margin);

class TrialLog {
 public:
  enum class Which : std::uint8_t { kAvailable, kOutOfReach };
  static constexpr std::size_t kEveryPolicy = 1000;  ///< more than the number of policies

  /// All three must outlive the log.
  TrialLog(const Space& space, const TryAll& try_all, const SearchOptions& options);

  /// Sets the searched length, at most a quarter of it warm-up. A full length that the user did not
  /// set becomes at most `times` the searched length.
  void shorten(Duration length, double times);
  /// Sets how many events all trials together may spend, those already spent included.
  void allow(double events);
  /// True if a trial of at most full length was left out since allow().
  [[nodiscard]] bool is_exhausted() const { return exhausted_; }
  /// A trial that measures the fraction `part` of the searched length, but at least the shortest
  /// length allowed, after its policy has settled.
  [[nodiscard]] Trial trial(const Proposal& proposal, double part) const;
  /// A trial of the length that was asked for.
  [[nodiscard]] Trial full_trial(const Proposal& proposal) const;
  [[nodiscard]] bool is_full(const Tried& tried) const {
    return tried.measured() >= full_.length - full_.warmup;
  }

  [[nodiscard]] Result<std::vector<Tried>> try_out(const std::vector<Proposal>& proposals,
                                                   double part);
  [[nodiscard]] Result<std::vector<Tried>> try_full(const std::vector<Proposal>& proposals);
  /// Runs variants of settings already logged: they are counted, and their results are not kept.
  [[nodiscard]] Result<std::vector<TrialResult>> try_again(const std::vector<Trial>& trials);

  /// The best setting of each policy; settings that were tried for a third of the searched length
  /// come before others. The best policies come first.
  [[nodiscard]] std::vector<Tried> best_by_policy(const Limits& limits, Which reach,
                                                  std::size_t most) const;

  /// Policies that the system can run and that were not judged.
  [[nodiscard]] std::vector<Unsettled> unsettled() const;
  /// Policies that the system can run and that have no trial, because each would exceed the
  /// allowance.
  [[nodiscard]] std::vector<Unafforded> unafforded() const;

  /// Each setting's longest trial, in order of its first.
  [[nodiscard]] const std::vector<Tried>& all() const { return all_; }
  [[nodiscard]] double spent() const { return spent_; }
  /// Events spent on trials that are longer than the searched length.
  [[nodiscard]] double spent_on_longer() const { return spent_on_longer_; }
  [[nodiscard]] std::size_t trials() const { return trials_; }
  [[nodiscard]] Duration length() const { return length_; }
  [[nodiscard]] Duration warmup() const { return warmup_; }
  [[nodiscard]] Duration measured() const { return length_ - warmup_; }
  [[nodiscard]] const FullLength& full() const { return full_; }

 private:
  /// Costs of a policy's trials.
  struct PolicyCost {
    const policy::PolicySpec* policy = nullptr;
    double rate = 0;                   // highest, events a simulated second; 0: not run
    std::optional<double> left_out{};  // events of the cheapest trial that was not run
  };

  /// Whether the policy settles in the warm-up that was asked for; other trials are not run.
  [[nodiscard]] bool settles(const Proposal& proposal) const;
  [[nodiscard]] Duration part_measured(double part) const;
  Result<std::vector<Tried>> run(const std::vector<Trial>& trials);
  /// Runs a few of the allowed trials, from `next` on; moves `next` past these.
  Result<void> run_some(const std::vector<Trial>& trials, std::size_t& next,
                        std::vector<TrialResult>& results);
  [[nodiscard]] PolicyCost& cost_of_policy(const Trial& trial);
  [[nodiscard]] double cost_of(const Trial& trial);
  void leave_out(const Trial& trial);
  void count(const Trial& trial, const TrialResult& result);
  void note(const Tried& tried);

  const Space& space_;
  const TryAll& try_all_;
  FullLength full_;
  ConfirmedAt confirmed_at_;
  Duration longest_warmup_;
  Duration length_;
  Duration warmup_;
  double spent_ = 0;
  double spent_on_longer_ = 0;
  double allowed_ = std::numeric_limits<double>::infinity();
  bool exhausted_ = false;
  double highest_rate_ = 0;  // events a simulated second
  std::vector<PolicyCost> costs_;  // in order of their first trial
  std::map<std::string, TrialResult> results_;  // of trials that were run: a repeated trial is free
  std::size_t trials_ = 0;
  std::vector<Tried> all_;
  std::map<std::string, std::size_t> index_;  // into all_
};

// One setting simulated again: under other seeds, or, where no seed changes anything, in longer
// windows; and with training's durations off by 5 %.

/// Simulates the setting under other seeds at the length that was asked for. Two seeds come first:
/// if both give the figures of `setting`, nothing in the run is random, and windows up to twice as
/// long replace the other seeds. In windows, figures may be 0.1 % beyond a limit, since a window
/// begins and ends within iterations.
[[nodiscard]] Result<Confirmation> confirm(const Tried& setting, const Limits& limits,
                                           TrialLog& log);

/// Adds results with training's durations 5 % longer and shorter.
[[nodiscard]] Result<void> vary_durations(const Proposal& proposal, TrialLog& log,
                                          Confirmation& confirmed);

// The last step of a search: from the trials of the searched length to the results.
//
// The leading settings are simulated at the length that was asked for, best first, until the best
// of all is known. A setting that keeps the limits there is confirmed under other seeds
// (confirm()); else the next setting, or a smaller load, replaces it. The runner-up, the best
// setting that the user's tool takes, those for looser limits and those that the system cannot run
// are simulated at that length, too; any of them that is within the limits and better is confirmed
// and replaces the best.

/// kYes: the budget does not cover the shortest trials of a whole search, so fewer settings enter
/// the last step.
enum class Scarce : std::uint8_t { kNo, kYes };

/// A search that is stopped has the best of its trials, unconfirmed.
[[nodiscard]] Result<Found> finals(const Space& space, TrialLog& log, const SearchOptions& options,
                                   Scarce scarce);

}  // namespace bubblesim::advise
