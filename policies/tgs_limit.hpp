// TGS's limit manager: computes from reports of the productive job's launch rate how many blocks
// the opportunistic job may launch in a window. Source: pkusys/TGS at e1c6a31,
// low_priority_hijack_call.c (limit_manager, update_rate_limit, shift_window), in our own words.
// Kept as the code has it: limits are cut off to whole numbers; the deviation is absolute, so that
// faster training throttles the filler, too; the profile goes on while a report reaches the best
// rate to within a block. Changed: the profile has a longest length (`profile_longest`: 5 reports,
// as on the GV100), since an exactly periodic simulated job would profile for ever; the ring of
// reports starts with zeros (uninitialised in the code). The filler gets more than a few percent
// only if training has slack, since the limit rises until 3 % of the launch *rate* are lost. A data
// loader or a service's idle time is slack (share 12.7 and 20.6 % on the GV100); a job whose host
// and GPU wait for each other, or that fills its GPU, has none (2 to 4 %). The share follows a
// sawtooth of some two minutes. XSched's authors ran a copy (sys/tgs of their artifact) with
// `tolerance` 0.02, hence `severe_deviation` 0.06, whose profile ends when the rate is steady, and
// whose slow start does not count faster training as harm (left out here). The limit's path in
// their log is met within 11 % (test moves_as_the_share_that_was_logged_on_a_gv100).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

/// The constants of the control loop. Rates are blocks a report, limits blocks a window.
struct TgsConstants {
  std::int64_t report_window;     ///< reports in which the best mean of two adjacent ones is sought
  std::int64_t profile_reports;   ///< fewest reports of a profile
  std::int64_t profile_longest;   ///< most reports of a profile
  double profile_tolerance;       ///< relative deviation below which the profile's rate has settled
  double profile_margin;          ///< profile: the rate counts less this if it rises, plus this if
                                  ///< it falls
  double drift_tolerance;         ///< control: relative deviation up to which the best rate follows
  double reprofile_tolerance;     ///< control: relative deviation above which the profile starts
                                  ///< again
  std::int64_t initial_limit;     ///< where slow start begins
  std::int64_t idle_blocks;       ///< a report below this counts as idle
  std::int64_t idle_reports;      ///< with more idle reports in the window, the limit is lifted
  std::int64_t adaptive_reports;  ///< reports before the limit can be lifted
  double tolerance;               ///< a smaller deviation of the rate is no harm
  double growth;                  ///< slow start's factor
  double additive_share;          ///< additive step, as a share of the best rate
  std::int64_t least_step;        ///< least step up or down
  double decrease;                ///< multiplicative decrease
  double severe_deviation;        ///< from it on the limit is divided by severe_divisor
  std::int64_t severe_divisor;
  double missed_deviation;      ///< a report this far off the best rate misses it
  std::int64_t missed_reports;  ///< this many such reports in a row lower the best rate
  double missed_factor;         ///< factor by which they lower it
  std::int64_t slow_start_cap;
  std::int64_t limit_cap;  ///< also the limit when training is idle
};

[[nodiscard]] TgsConstants tgs_constants(const policy::ParameterSet& given);
[[nodiscard]] std::vector<policy::ParameterSpec> tgs_limit_parameters();

class TgsLimit {
 public:
  explicit TgsLimit(const TgsConstants& constants)
      : constants_(constants), window_(static_cast<std::size_t>(constants.report_window), 0.0) {}

  /// A report arrived: training's blocks in the last report period, and the filler's blocks in
  /// its last full window.
  void report(std::uint64_t training_blocks, std::int64_t filler_rate);

  [[nodiscard]] std::int64_t limit() const { return limit_; }
  [[nodiscard]] double best_rate() const { return best_; }
  [[nodiscard]] bool is_profiling() const { return phase_ == Phase::kProfile; }

 private:
  enum class Phase : std::uint8_t { kProfile, kControl };
  enum class State : std::uint8_t { kSlowStart, kAvoidance };

  double shift_window(double rate);
  void profile(double window_rate);
  void control(double rate, double window_rate, std::int64_t filler_rate);
  void follow(double window_rate, double deviation);
  void update(double rate, std::int64_t filler_rate);
  void avoid(double deviation, double best, std::int64_t filler_rate);
  void count_missed(double deviation);
  void restart(std::int64_t limit);
  [[nodiscard]] std::int64_t cap(std::int64_t constant, std::int64_t filler_rate) const;

  TgsConstants constants_;
  std::vector<double> window_;  ///< newest first
  Phase phase_ = Phase::kProfile;
  State state_ = State::kSlowStart;
  double best_ = 0;              ///< training's undisturbed rate, as far as known
  std::int64_t profiled_ = 0;    ///< reports of this profile
  bool profile_again_ = false;   ///< the last report moved the best rate
  std::int64_t controlled_ = 0;  ///< reports of the control phase, over all profiles
  std::int64_t missed_ = 0;
  std::int64_t limit_ = 0;
  bool last_step_up_ = false;  ///< of avoidance; slow start's end counts as down
};

}  // namespace bubblesim::policies
