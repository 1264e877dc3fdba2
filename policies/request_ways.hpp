// The ways in which requests may run beside training, and what each was seen to cost and to give
// on this job. A second of a request's work is a second of its kernels, each as short as it was
// seen until then. A way's time is how long requests take beside training for a second of their
// work; its price is what training loses for it. Work in bubbles lowers the price: where requests
// are slow, more of it falls into bubbles.
//
// The ladder leads from the cheapest way to faster ones, by what is gained for what is paid: a way
// that is no faster than a cheaper one, or that a mixture of two others beats, is not on it. Its
// foot is the fastest rung whose price, for all requests, is within the budget; else the cheapest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "policies/training_budget.hpp"

namespace bubblesim::policies {

struct RequestWay {
  std::int32_t priority = 0;       ///< less training's: below 0 after it, above 0 before it
  std::uint32_t percentage = 100;  ///< of the SMs, while training computes
};

class RequestWays {
 public:
  /// `share` of training's time may be lost.
  explicit RequestWays(double share) : share_(share) {}

  /// The first is taken for the cheapest until one is known.
  void add(RequestWay way) { ways_.push_back(way), seen_.emplace_back(); }

  [[nodiscard]] const RequestWay& operator[](std::size_t way) const { return ways_[way]; }

  /// A request was there in this way for `time`, in which training computed. Knowledge fades, so
  /// that each way is tried again.
  void pass(std::size_t way, Duration time) {
    seen_[way].beside += to_seconds(time);
    beside_ += to_seconds(time);
    if (beside_ < kMemory) return;
    for (Seen& seen : seen_) seen.halve();
    beside_ = 0;
  }
  /// A kernel of a request ended, whose shortest time is `work`; `beside`: while training computed.
  /// No way: bubbles only.
  void end_kernel(std::optional<std::size_t> way, Duration work, bool beside) {
    work_ += to_seconds(work);
    if (!way) return;
    seen_[*way].work += to_seconds(work);
    if (beside) seen_[*way].work_beside += to_seconds(work);
  }
  /// A kernel of training ended so much later than it does undisturbed. Returns what that seems to
  /// cost: as much for a second of delay as in recent iterations.
  Duration delay(std::optional<std::size_t> way, Duration late) {
    (way ? seen_[*way].late : other_late_) += to_seconds(late);
    return scale(late, cost_of_delay());
  }

  /// An iteration of training lost `loss`; nothing: not known. The job's other ranks add to what is
  /// seen here: each way lost in proportion to its delay.
  void end_iteration(std::optional<Duration> loss) {
    double late = std::max(std::exchange(other_late_, 0), 0.0);
    for (Seen& seen : seen_) late += seen.late = std::max(seen.late, 0.0);
    double scale = cost_of_delay();
    if (loss && late > 0) {
      scale = std::clamp(to_seconds(*loss) / late, -kMostScale, kMostScale);
      by_delay_.see(scale * late, late);
    }
    for (Seen& seen : seen_) seen.lost += scale * std::exchange(seen.late, 0);
    order();
  }

  /// Time passed in which requests may have come.
  void elapse(Duration time) {
    elapsed_ += to_seconds(time);
    if (elapsed_ >= kMemory) elapsed_ /= 2, work_ /= 2;
  }

  /// A way that is hardly known. When it is known, the ladder is made anew.
  [[nodiscard]] std::optional<std::size_t> to_try() {
    if (trying_ && seen_[*trying_].is_known(kTried)) {
      trying_.reset();
      order();
    }
    for (std::size_t way = 0; way < ways_.size() && !trying_; ++way) {
      if (!is_known(way)) trying_ = way;
    }
    return trying_;
  }

  /// The way at a height from the foot of the ladder, 0, to its top, 1.
  [[nodiscard]] std::size_t at(double height) const {
    const std::size_t rungs = ladder_.size() - 1 - foot_;
    return ladder_[foot_ + static_cast<std::size_t>(height * static_cast<double>(rungs))];
  }

  /// Seconds of training for a second of requests' work; 0: not known.
  [[nodiscard]] double price(std::size_t way) const {
    return seen_[way].work > 0 ? std::max(0.0, seen_[way].lost / seen_[way].work) : 0;
  }

 private:
  /// A way is tried for so many seconds of requests beside training, and again when half of that
  /// has faded.
  static constexpr double kTried = 0.5;
  static constexpr double kMemory = 60;  ///< likewise, of all ways
  /// What is nearer to 1 is the same: so much is noise in half a second.
  static constexpr double kFaster = 0.96;
  /// A loss of more times the delay seen has other causes: TrainingBudget's bound for ranks.
  static constexpr double kMostScale = 16;

  struct Seen {  ///< seconds
    double beside = 0;       ///< of requests, while training computed
    double work = 0;
    double work_beside = 0;  ///< of it, while training computed
    double late = 0;         ///< in this iteration
    double lost = 0;

    void halve() { beside /= 2, work /= 2, work_beside /= 2, lost /= 2; }
    [[nodiscard]] bool is_known(double tried) const { return beside >= tried; }
  };

  [[nodiscard]] bool is_known(std::size_t way) const { return seen_[way].is_known(kTried / 2); }
  [[nodiscard]] double cost_of_delay() const {
    return std::clamp(by_delay_.get(), 0.0, kMostScale);
  }
  [[nodiscard]] double time_of(std::size_t way) const {
    return seen_[way].beside / std::max(seen_[way].work_beside, 1e-12);
  }

  /// Makes the ladder from what is known now.
  void order() {
    ladder_.assign(1, cheapest());
    while (const std::optional<std::size_t> next = next_rung(ladder_.back())) {
      ladder_.push_back(*next);
    }
    foot_ = ladder_.size() - 1;
    while (foot_ > 0 && price(ladder_[foot_]) * work_ > share_ * elapsed_) --foot_;
  }

  /// Of ways that are as cheap, the fastest.
  [[nodiscard]] std::size_t cheapest() const {
    std::optional<std::size_t> cheapest;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (is_known(way) && (!cheapest || price(way) < price(*cheapest))) cheapest = way;
    }
    if (!cheapest) return 0;
    std::size_t best = *cheapest;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      const bool as_cheap = is_known(way) && kFaster * price(way) <= price(*cheapest);
      if (as_cheap && time_of(way) < time_of(best)) best = way;
    }
    return best;
  }

  /// The faster way that gains most for each second of training.
  [[nodiscard]] std::optional<std::size_t> next_rung(std::size_t from) const {
    std::optional<std::size_t> next;
    double steepest = 0;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!is_known(way) || !is_known(from) || time_of(way) > kFaster * time_of(from)) continue;
      const double gain = time_of(from) - time_of(way);
      const double slope = gain / std::max(price(way) - price(from), 1e-12);
      if (slope > steepest) next = way;
      steepest = std::max(steepest, slope);
    }
    return next;
  }

  double share_;
  std::vector<RequestWay> ways_;
  std::vector<Seen> seen_;
  double beside_ = 0;  ///< seconds of requests since knowledge was halved last
  LossRate by_delay_;
  double other_late_ = 0;  ///< seconds in this iteration, by requests in bubbles only
  double work_ = 0;        ///< seconds of requests' work within elapsed_
  double elapsed_ = 0;
  std::optional<std::size_t> trying_;
  std::vector<std::size_t> ladder_ = {0};
  std::size_t foot_ = 0;  ///< of ladder_
};

}  // namespace bubblesim::policies
