// What fillers may cost training, and what they have cost it: a bucket of time that fills at
// `share` of the time that passes and holds what comes in over `horizon`, or over an iteration if
// that is longer.
//
// Two ways to know a cost. At once: the time that fillers' work stood on the GPU while training
// had something to compute (exposure), times a price; the price begins at 1, for training cannot
// lose more on this GPU than all of that time. And by measurement: when an iteration ends, what it
// took longer than the reference takes the place of what was charged for it, and moves the price:
// host-bound training loses next to nothing by exposure, a job of many ranks more than its own.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

struct BudgetConstants {
  double share;      ///< of training's throughput
  Duration horizon;  ///< of time whose share may be spent at once
};

class TrainingBudget {
 public:
  explicit TrainingBudget(const BudgetConstants& constants)
      : share_(constants.share), horizon_(constants.horizon) {
    see_iteration({});
  }

  /// Iterations take so long: what is measured once an iteration cannot be kept over less.
  void see_iteration(Duration length) { most_ = scale(std::max(horizon_, length), share_); }

  /// Time has passed since the last call, `exposed` of it with fillers in training's way.
  void pass(Duration time, Duration exposed) {
    const Duration charge = scale(exposed, price_);
    exposed_ += exposed;
    charged_ += charge;
    credit_ = std::min(most_, credit_ + scale(time, share_)) - charge;
  }

  /// An iteration of training has ended, `loss` longer than the reference; nothing: not known.
  void end_iteration(std::optional<Duration> loss) {
    if (loss) {
      credit_ = std::min(most_, credit_ + charged_ - *loss);
      lost_ = kMemory * lost_ + to_seconds(*loss);
      exposure_ = kMemory * exposure_ + to_seconds(exposed_);
      if (exposure_ > 0) price_ = std::clamp(lost_ / exposure_, kLeastPrice, kMostPrice);
    }
    exposed_ = charged_ = Duration{};
  }

  [[nodiscard]] Duration credit() const { return credit_; }
  [[nodiscard]] Duration most() const { return most_; }
  [[nodiscard]] double price() const { return price_; }
  /// In this iteration.
  [[nodiscard]] Duration exposed() const { return exposed_; }
  /// And for it.
  [[nodiscard]] Duration charged() const { return charged_; }

  /// Whether `gain` of fillers' work is worth `exposure` in training's way now: dear gains only
  /// while the bucket is full, cheap ones until it is empty.
  [[nodiscard]] bool is_worth(Duration gain, Duration exposure) const {
    const Duration cost = scale(exposure, price_);
    if (cost > credit_) return false;
    const double full = to_seconds(credit_);
    const double missing = to_seconds(most_ - credit_);
    return to_seconds(gain) * full >= kShadow * to_seconds(cost) * missing;
  }

 private:
  /// What remains of an iteration after the next one: about ten count.
  static constexpr double kMemory = 0.9;
  /// One part in sixteen is below what a single iteration's length tells.
  static constexpr double kLeastPrice = 1.0 / 16;
  static constexpr double kMostPrice = 16;
  /// A half-full bucket buys only what gains so many times its cost.
  static constexpr double kShadow = 4;

  double share_;
  Duration horizon_;
  Duration most_{};
  Duration credit_{};
  Duration exposed_{};  ///< in this iteration
  Duration charged_{};  ///< for it
  double lost_ = 0;     ///< seconds, recent iterations
  double exposure_ = 0;
  double price_ = 1;
};

}  // namespace bubblesim::policies
