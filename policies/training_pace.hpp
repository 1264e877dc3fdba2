// The length of an iteration of training without fillers, and the ends of iterations: by the
// framework's marks or, without marks, by the period of the job's launches.
//
// Fillers are kept out of the first iterations, for `reference` (5 s) and until one iteration was
// whole, and again after the first mark; so a job shorter than a minute gains little. The reference
// is the mean length of the whole iterations that ended before fillers come in; if lengths repeat
// in a cycle, each place of the cycle has its own reference. For iterations longer than 20 times
// `reference`, until an iteration without fillers ends, the reference is a bound: the least
// disturbed iteration less all time that fillers may have cost. If a policy starts later on one GPU
// than on the job's others, its reference includes the others' fillers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// The period of `lengths`: the number of iterations after which the later half repeats to within 1
/// %; at most 64, and seen twice. 0: none.
[[nodiscard]] std::size_t repeating_lengths(std::span<const Duration> lengths);

/// The length of the shortest sequence that the later half of `keys` repeats at least twice; 0:
/// none.
[[nodiscard]] std::size_t repeating_period(std::span<const std::uint64_t> keys);

class TrainingPace {
 public:
  /// Fillers are kept out for the first `alone`, and until one iteration was whole, for at most
  /// kMostAlone times `alone`.
  explicit TrainingPace(Duration alone) : alone_(alone) { keys_.reserve(kUsualKeys); }

  /// Training launches a kernel. Returns whether an iteration ends before it, by the period of
  /// launches.
  bool launch(std::uint64_t key, policy::Instant now);
  /// The framework marks the end of an iteration: from now on only marks count. Returns whether
  /// this is the first mark: then the spans measured before were not iterations.
  bool mark() {
    if (std::exchange(marked_, true)) return false;
    begin_.reset();
    reference_.reset();
    quiet_.clear();
    turn_.clear();
    return true;
  }

  /// What fillers did to an iteration.
  struct FillerCost {
    Duration exposed;  ///< time with fillers in its way
    Duration charged;  ///< time that they seem to have cost
    Duration at_once;  ///< the most that the budget lets them cost in one iteration
  };
  /// Called at an iteration's end. Returns its loss against the reference; nothing: no reference
  /// yet.
  std::optional<Duration> end_iteration(bool filled, const FillerCost& cost, policy::Instant now);

  /// Whether fillers are kept out.
  [[nodiscard]] bool measures(policy::Instant now) const {
    return now < alone_ || (quiet_.empty() && now < kMostAlone * alone_);
  }
  [[nodiscard]] policy::Instant deadline() const { return alone_; }
  [[nodiscard]] std::optional<Duration> reference() const { return reference_; }
  /// The longest undisturbed iteration less the shortest; 0: not known.
  [[nodiscard]] Duration spread() const;

 private:
  /// A bound in place of an undisturbed iteration drifts, and the budget with it: a start-up of 20
  /// times `alone` is better for a job of hours.
  static constexpr int kMostAlone = 20;

  void learn(Duration length);
  std::optional<Duration> compare_undisturbed(Duration length, Duration expected,
                                              Duration at_once);
  [[nodiscard]] static bool is_other_kind(Duration length, Duration expected, Duration at_once);

  /// An unmarked job with more kernels within `alone` / 2 costs an allocation or two.
  static constexpr std::size_t kUsualKeys = 4096;

  Duration alone_;
  bool marked_ = false;
  std::vector<std::uint64_t> keys_;  ///< of launches while no mark and no period is known
  std::size_t period_ = 0;
  std::size_t phase_ = 0;
  std::vector<Duration> quiet_;  ///< lengths of the undisturbed iterations at the beginning
  std::vector<Duration> turn_;   ///< the repeated cycle at the end of `quiet_`; may be empty
  std::size_t place_ = 0;        ///< the present iteration's index in the cycle
  std::optional<policy::Instant> begin_;  ///< start of the present iteration
  std::optional<Duration> reference_;
  bool bounded_ = false;  ///< the reference is a bound from a disturbed iteration
  Duration bound_exposed_{};  ///< `exposed` of that iteration
};

}  // namespace bubblesim::policies
