// The time that fillers may cost training, and have cost it: a bucket that fills at `share` of the
// time that passes. It holds the inflow of `horizon`, or of an iteration if that is longer.
//
// A cost is charged at once and corrected later. The first charge is exposure, the time for which
// fillers' work was on the GPU while training computed, times a price. Ranks that wait for each
// other add up their losses, while each GPU has a bucket of its own: so the price begins at the
// number of the job's ranks (at most 16), and the job's GPUs together spend one budget. When an
// iteration ends, its length less the reference replaces the charge and moves the price:
// host-bound training loses almost nothing by exposure, a job of many ranks loses more than the
// exposure of one GPU. Beside requests, whose ways cost unlike, a charge stands only until the
// kernel of training ends: if its delay is known, what that seems to cost replaces the charge
// (request_ways.hpp). An iteration that had begun when fillers came in is not measured. If an
// iteration lost more than half of itself and more than two buckets (an evaluation, a checkpoint),
// only this GPU's exposure counts. Iterations also vary without fillers: by that spread the bucket
// may overflow or owe more.
//
// Limits. One GPU's fillers may spend what the job's other GPUs would have needed, since all see
// the same loss: in a pipeline the bubbles of the other GPUs stay closed until nothing is owed, and
// gains need not grow with the budget. The gate's `tell` slows the reference too, so the budget
// does not bound its cost: 0.5 us a launch are some 0.8 % of a job whose host is always behind
// (`fill` on an H200: 0.48 to 0.67 %).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

struct BudgetConstants {
  double share;      ///< of training's throughput
  Duration horizon;  ///< the time whose `share` may be spent at once
};

/// Seconds that training loses for a second of what makes it lose: over recent iterations, each of
/// which weighs less than the next one.
class LossRate {
 public:
  explicit LossRate(double believed = 1) : cause_(kBelieved / believed) {}

  void see(double lost, double cause) {
    lost_ = kFades * lost_ + lost;
    cause_ = kFades * cause_ + cause;
  }
  [[nodiscard]] double get() const { return lost_ / cause_; }

 private:
  static constexpr double kFades = 0.9;  ///< about ten iterations count
  /// What is believed at first has the weight of so many seconds lost.
  static constexpr double kBelieved = 0.1;

  double lost_ = kBelieved;
  double cause_;
};

class TrainingBudget {
 public:
  explicit TrainingBudget(const BudgetConstants& constants)
      : share_(constants.share), horizon_(constants.horizon) {
    see_iteration({});
  }

  /// Requests are among the fillers: the bucket holds half and begins full, so that spending
  /// settles from above. Call before anything is charged.
  void serve_requests() {
    horizon_ = horizon_ / 2;
    see_iteration({});
    credit_ = most_;
  }

  /// The ranks of training's job, folded ones too; 1: not known. Call before anything is charged.
  void see_ranks(std::uint32_t ranks) {
    price_ = std::clamp(static_cast<double>(ranks), 1.0, kMostPrice);
    rate_ = LossRate(price_);
  }

  /// The length of an iteration: costs are measured once an iteration, so the budget cannot be kept
  /// over less. `spread`: how much iterations differ without fillers.
  void see_iteration(Duration length, Duration spread = {}) {
    most_ = scale(std::max(horizon_, length), share_);
    spread_ = spread;
  }

  /// Time has passed since the last call; for `exposed` of it fillers were on the GPU beside
  /// training.
  void pass(Duration time, Duration exposed) {
    exposed_ += exposed;
    if (credit_ < most_) credit_ = std::min(most_, credit_ + scale(time, share_));
    charge(scale(exposed, price_));
  }

  /// What fillers cost since the last call, in place of what was charged; nothing: not known. A
  /// gain takes back no more than this iteration's charges.
  void see_cost(std::optional<Duration> cost) {
    if (cost) charge(std::max(*cost - at_once_, -charged_));
    at_once_ = {};
  }

  /// An iteration of training has ended, `loss` longer than the reference; nothing: not known.
  void end_iteration(std::optional<Duration> loss) {
    if (loss) {
      credit_ = std::min(most_ + spread_, credit_ + charged_ - *loss);
    }
    if (loss && exposed_ > Duration{}) {
      rate_.see(to_seconds(*loss), to_seconds(exposed_));
      price_ = std::clamp(rate_.get(), kLeastPrice, kMostPrice);
    }
    exposed_ = charged_ = at_once_ = Duration{};
  }

  /// The span measured last was no iteration: its loss is not owed.
  void forgive() { credit_ = std::max(credit_, Duration{}); }

  [[nodiscard]] Duration credit() const { return credit_; }
  [[nodiscard]] Duration most() const { return most_; }
  /// The bucket's content, as a share of the most that it holds; negative: owed.
  [[nodiscard]] double fill() const { return to_seconds(credit_) / to_seconds(most_); }
  /// More than one bucket is owed.
  [[nodiscard]] bool is_overdrawn() const { return credit_ < -most_ - spread_; }
  [[nodiscard]] double price() const { return price_; }
  /// Time in this iteration that fillers were in training's way, beside it or in its place.
  [[nodiscard]] Duration exposed() const { return exposed_; }
  /// What has been charged in this iteration.
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
  /// The bounds of the price. A lower one could not be told from a single iteration's length.
  static constexpr double kLeastPrice = 1.0 / 64;
  static constexpr double kMostPrice = 16;
  /// From a half-full bucket, work is bought only if it gains at least this many times its cost.
  static constexpr double kShadow = 4;

  void charge(Duration cost) { credit_ -= cost, charged_ += cost, at_once_ += cost; }

  double share_;
  Duration horizon_;
  Duration most_{};
  Duration spread_{};
  Duration credit_{};
  Duration exposed_{};  ///< in this iteration
  Duration charged_{};  ///< likewise
  Duration at_once_{};  ///< likewise, since a kernel of training ended
  double price_ = 1;
  LossRate rate_;  ///< of exposure
};

}  // namespace bubblesim::policies
