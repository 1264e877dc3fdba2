// How long one GPU was in which state: a clock that is told of every start and end of a device
// operation, and splits the measured window among what ran at once.
//
// Bubble time is time without a computing kernel of training: collectives leave most SMs free,
// copies and memsets all of them, so a filler could use it. It is recovered while an operation of
// a filler runs. Calls come in time order; each costs
// O(1) and allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// What runs, and whose it is, as far as bubbles are concerned.
enum class Activity : std::uint8_t {
  kTrainingKernel, kTrainingCollective,
  kTrainingTransfer,  ///< a copy or memset
  kFillerWork,
};

class ActivityMeter {
 public:
  /// Nothing before `warmup` is counted.
  explicit ActivityMeter(SimTime warmup) : warmup_(warmup) {}

  void started(Activity activity, SimTime now);
  /// Precondition: one more started() than ended() of this activity.
  void ended(Activity activity, SimTime now);
  /// Counts up to `now`; call it at the end of the run, before the readings.
  void advance(SimTime now);

  /// Any operation ran.
  [[nodiscard]] Duration busy() const;
  /// Any operation other than a training collective ran.
  [[nodiscard]] Duration busy_without_collectives() const;
  /// A training operation ran, collectives, copies and memsets included.
  [[nodiscard]] Duration training_busy() const;
  /// An operation of a filler ran.
  [[nodiscard]] Duration filler_busy() const;
  /// No computing kernel of training ran.
  [[nodiscard]] Duration bubble() const;
  /// Bubble time while a training collective ran (cause "collective").
  [[nodiscard]] Duration collective_bubble() const;
  /// Bubble time while copies and memsets of training ran, and no collective (cause "transfer").
  [[nodiscard]] Duration transfer_bubble() const;
  /// Bubble time while no training operation at all ran (cause "idle").
  [[nodiscard]] Duration idle_bubble() const;
  /// Bubble time while a filler ran.
  [[nodiscard]] Duration recovered() const;
  /// The part of recovered() whose bubbles had the cause "collective".
  [[nodiscard]] Duration recovered_collective() const;
  /// The part of recovered() whose bubbles had the cause "transfer".
  [[nodiscard]] Duration recovered_transfer() const;

 private:
  static constexpr unsigned kKernel = 1;
  static constexpr unsigned kCollective = 2;
  static constexpr unsigned kTransfer = 4;
  static constexpr unsigned kFiller = 8;
  static constexpr unsigned kTraining = kKernel | kCollective | kTransfer;

  [[nodiscard]] static constexpr unsigned bit_of(Activity activity) {
    return 1U << static_cast<unsigned>(activity);
  }
  template <class Predicate>
  [[nodiscard]] Duration sum(Predicate counts) const;

  SimTime warmup_;
  SimTime last_ = kSimStart;
  std::array<std::uint32_t, 4> running_{};  ///< by Activity
  unsigned state_ = 0;                      ///< bits above: of what runs
  std::array<Duration, 16> in_state_{};     ///< by these
};

}  // namespace bubblesim::observe
