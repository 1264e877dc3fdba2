// The ways in which requests may run beside training, and what each was seen to cost and to give
// on this job, while training computes: its delay, and the time, for each kernel of the requests.
// From the cheapest way the ladder leads to faster ones, by what is gained for what is paid: a way
// that is no faster than a cheaper one, or that a mixture of two others beats, is not on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

struct RequestWay {
  std::int32_t priority = 0;       ///< less training's: below 0 after it, above 0 before it
  std::uint32_t percentage = 100;  ///< of the SMs, while training computes
};

class RequestWays {
 public:
  /// How the ladder comes about.
  enum class Ladder : std::uint8_t {
    kGiven,     ///< all ways, in the order given
    kMeasured,  ///< each is tried; until one is known, the first is taken for the cheapest
  };

  /// At least one way.
  RequestWays(std::vector<RequestWay> ways, Ladder ladder)
      : ways_(std::move(ways)), made_(ladder), seen_(ways_.size()), ladder_(ways_.size()) {
    std::iota(ladder_.begin(), ladder_.end(), std::size_t{0});
    order();
  }

  [[nodiscard]] bool measures() const { return made_ == Ladder::kMeasured; }
  [[nodiscard]] const RequestWay& operator[](std::size_t way) const { return ways_[way]; }

  /// Training computed for `time`, with a request beside it in this way. Old knowledge fades, so
  /// that each way is tried again.
  void pass(std::size_t way, Duration time) {
    seen_[way].time += to_seconds(time);
    all_ += to_seconds(time);
    if (all_ < kMemory) return;
    for (Seen& seen : seen_) seen.halve();
    all_ = 0;
  }
  /// And a kernel of the requests ended.
  void end_kernel(std::size_t way) { seen_[way].kernels += 1; }
  /// A kernel of training ended so much later than it does undisturbed.
  void delay(std::size_t way, Duration late) { seen_[way].delay += to_seconds(late); }

  /// Makes the ladder from what is known now.
  void order() {
    if (!measures()) return;
    ladder_.assign(1, cheapest());
    while (const std::optional<std::size_t> next = next_rung(ladder_.back())) {
      ladder_.push_back(*next);
    }
  }

  /// A way that is hardly known. When it is known, the ladder is made anew.
  [[nodiscard]] std::optional<std::size_t> to_try() {
    if (!measures()) return std::nullopt;
    if (trying_ && seen_[*trying_].is_known(kTried)) {
      trying_.reset();
      order();
    }
    for (std::size_t way = 0; way < ways_.size() && !trying_; ++way) {
      if (!is_known(way)) trying_ = way;
    }
    return trying_;
  }

  /// The ways that are worth their price, the cheapest first. At least one.
  [[nodiscard]] std::span<const std::size_t> ladder() const { return ladder_; }

  /// Training's delay in seconds for a kernel of the requests. A higher priority is no cheaper; one
  /// before training delays its peers, too, which this GPU does not see.
  [[nodiscard]] double price(std::size_t way) const {
    double price = seen_[way].price();
    for (std::size_t other = 0; other < ways_.size(); ++other) {
      const bool below = ways_[other].percentage == ways_[way].percentage &&
                         ways_[other].priority < ways_[way].priority;
      const double step = ways_[way].priority > 0 ? kPeers : 1;
      if (below && is_known(other)) price = std::max(price, step * seen_[other].price());
    }
    return price;
  }

 private:
  /// A way is tried for so many seconds of requests, and again when half of that has faded.
  static constexpr double kTried = 0.5;
  static constexpr double kMemory = 60;  ///< likewise, of all ways
  static constexpr double kLeastKernels = 20;
  /// What is nearer to 1 is the same: so much is noise in half a second.
  static constexpr double kFaster = 0.96;
  /// Jobs of four ranks lose 1.2 to 1.6 times as much to requests before training as this delay
  /// says, against requests after it (`mps` with priority in the cells dp/bert-base/*).
  static constexpr double kPeers = 1.2;

  struct Seen {
    double time = 0;  ///< seconds
    double kernels = 0;
    double delay = 0;  ///< seconds

    void halve() { time /= 2, kernels /= 2, delay /= 2; }
    [[nodiscard]] bool is_known(double time_tried) const {
      return time >= time_tried && kernels >= kLeastKernels;
    }
    [[nodiscard]] double price() const { return kernels > 0 ? std::max(0.0, delay / kernels) : 0; }
  };

  [[nodiscard]] bool is_known(std::size_t way) const { return seen_[way].is_known(kTried / 2); }
  [[nodiscard]] double time_of(std::size_t way) const {
    return seen_[way].time / seen_[way].kernels;
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

  std::vector<RequestWay> ways_;
  Ladder made_;
  std::vector<Seen> seen_;
  double all_ = 0;  ///< seconds of requests since knowledge was halved last
  std::optional<std::size_t> trying_;
  std::vector<std::size_t> ladder_;
};

}  // namespace bubblesim::policies
