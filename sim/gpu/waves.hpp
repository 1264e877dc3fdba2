// The progress of one kernel: waiting blocks, resident blocks, and the ends of the resident ones.
//
// A kernel that alone takes `solo`, in W waves, has blocks of solo / W each. To keep this exact,
// work is counted in units: an unslowed kernel does W units a nanosecond, a block is `solo` units,
// so the kernel ends after W * solo units, which take exactly `solo`. Units are whole numbers held
// in doubles, exact below 2^53 (9 s times a million waves).
//
// Blocks placed together are a cohort. All of a kernel's cohorts run at one rate and have equal
// work, so they end in the order of their placement. Waves in which every block is replaced by a
// block of the same kernel are skipped in one step: the cost does not grow with the number of
// waves.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::gpu {

/// Which blocks take the place of blocks that end.
enum class Refill : std::uint8_t {
  kNone,  ///< none: their room becomes free
  kSelf,  ///< waiting blocks of the same kernel
};

/// The state of one kernel's blocks. Reused for other kernels without allocating.
class Waves {
 public:
  /// A kernel of `blocks` blocks, of which `capacity` fit at once on the GPU alone.
  void start(Duration solo, std::uint64_t blocks, std::uint64_t capacity);
  /// The waves of a kernel that runs alone. One wave, the usual case, needs no division.
  [[nodiscard]] static double count(std::uint64_t blocks, std::uint64_t capacity) {
    return blocks <= capacity ? 1.0 : static_cast<double>((blocks + capacity - 1) / capacity);
  }
  /// Whether a kernel that runs alone ends after exactly `solo`: its units must stay whole numbers,
  /// with the last wave counted as a full one.
  [[nodiscard]] static bool exact(Duration solo, std::uint64_t blocks, std::uint64_t capacity) {
    const auto solo_ns = static_cast<double>(solo.count());
    return static_cast<double>(blocks) * solo_ns + static_cast<double>(capacity) * solo_ns < 0x1p53;
  }
  /// Starts a kernel whose blocks never end by themselves: a collective.
  void hold(std::uint64_t blocks);

  [[nodiscard]] std::uint64_t unplaced() const { return unplaced_; }
  [[nodiscard]] std::uint64_t resident() const { return resident_; }
  [[nodiscard]] bool finished() const { return unplaced_ == 0 && resident_ == 0; }
  /// Blocks resident when a full wave runs alone.
  [[nodiscard]] std::uint64_t full_wave() const { return full_wave_; }

  /// Makes waiting blocks resident, now. Precondition: 0 < blocks <= unplaced().
  void place(std::uint64_t blocks);
  /// Reduces the kernel's blocks to `blocks` by dropping waiting ones; resident ones stay.
  void limit(std::uint64_t blocks);
  /// Speed from now on, relative to alone; > 0.
  void set_rate(double rate) { speed_ = waves_ * rate; }

  /// No block is resident: the next blocks begin when placed, not at the end of earlier ones.
  void pause() { place_from_ = progress_; }

  struct Passed {
    std::uint64_t freed = 0;  ///< blocks that ended and were not replaced
    double block_ns = 0;      ///< integral of resident blocks over the span
  };
  /// Lets time pass at the current rate.
  Passed pass(Duration span, Refill refill) {
    return goes_on(span) ? Passed{0, go_on(span)} : pass_ends(span, refill);
  }

  /// True if the span is positive and no block can end in it.
  [[nodiscard]] bool goes_on(Duration span) const {
    return span > Duration::zero() && !may_end_by(progress_ + units_in(span));
  }
  /// Lets a span pass in which no block ends; returns Passed::block_ns.
  double go_on(Duration span) {
    const double moved = units_in(span);
    progress_ += moved;
    place_from_ = progress_;
    return static_cast<double>(resident_) * moved / speed_;
  }

  /// Whether the kernel ends in the span. Precondition: its resident blocks are the last ones, and
  /// end together.
  [[nodiscard]] bool ends_in(Duration span) const {
    return unplaced_ == 0 && head_ + 1 == cohorts_.size() &&
           is_over(cohorts_[head_].end - (progress_ + units_in(span)));
  }
  /// Lets a span pass. Preconditions: the resident blocks are the last ones and end together; the
  /// span is positive.
  Passed pass_last(Duration span);

  /// Whether no block ends within a nanosecond at any speed up to that of the kernel alone.
  [[nodiscard]] bool lasts_on() const {
    return head_ == cohorts_.size() || cohorts_[head_].end - progress_ > waves_;
  }

  /// The time until the next block ends; Duration::max() if none will.
  [[nodiscard]] Duration until_first_end() const { return whole_ns(left_to_first_end()); }
  /// The time until the next block ends, in ns, unrounded, to compare kernels: the least time ends
  /// first.
  [[nodiscard]] double left_to_first_end() const {
    return head_ == cohorts_.size() ? kNever : left(cohorts_[head_].end);
  }
  /// The time until all blocks have ended, if waiting blocks replace ending ones; in ns, unrounded.
  [[nodiscard]] double left_to_last_end() const {
    if (head_ == cohorts_.size()) return kNever;
    return left(unplaced_ == 0 ? cohorts_.back().end : last_placed() + wave_units_);
  }
  /// `left` rounded up; Duration::max() if it exceeds the range of Duration.
  [[nodiscard]] static Duration whole_ns(double left) {
    if (left <= 0) return Duration::zero();
    if (left >= 0x1p62) return Duration::max();
    const auto whole = static_cast<std::int64_t>(left);
    return Duration{static_cast<double>(whole) < left ? whole + 1 : whole};
  }
  /// The time until the last waiting block is placed, if waiting blocks replace ending ones one for
  /// one. If none waits: the time until the next block ends.
  [[nodiscard]] double left_to_last_placed() const {
    return unplaced_ == 0 || head_ == cohorts_.size() ? left_to_first_end() : left(last_placed());
  }
  /// left_to_last_placed() as whole nanoseconds.
  [[nodiscard]] Duration until_last_placed() const { return whole_ns(left_to_last_placed()); }
  [[nodiscard]] Duration until_last_end() const { return whole_ns(left_to_last_end()); }

 private:
  struct Cohort {
    double end;  ///< units
    std::uint64_t blocks;
  };

  // A block with less time left has ended: far below a nanosecond, far above rounding errors.
  static constexpr double kToleranceNs = 1e-6;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // The usual cases, no work left or far more, need no division.
  [[nodiscard]] bool may_end_by(double progress) const {
    return head_ < cohorts_.size() && cohorts_[head_].end - progress <= 2 * kToleranceNs * speed_;
  }
  [[nodiscard]] bool due(double end) const { return is_over(end - progress_); }
  /// Whether a block with `left` units of work left counts as ended.
  [[nodiscard]] bool is_over(double left) const {
    return left <= 0 || (left <= 2 * kToleranceNs * speed_ && left / speed_ <= kToleranceNs);
  }
  [[nodiscard]] double units_in(Duration span) const {
    return static_cast<double>(span.count()) * speed_;
  }
  Passed pass_ends(Duration span, Refill refill);
  [[nodiscard]] double left(double end) const { return (end - progress_) / speed_ - kToleranceNs; }
  void push(double end, std::uint64_t blocks);
  [[nodiscard]] double last_placed() const;
  void skip_full_rounds();
  void reset(std::uint64_t blocks);

  std::vector<Cohort> cohorts_;  ///< from head_ on, by end
  std::size_t head_ = 0;
  double progress_ = 0;     ///< units done since the start
  double place_from_ = 0;   ///< progress at which blocks placed now begin: see place()
  double wave_units_ = 0;   ///< units of a block
  double waves_ = 1;        ///< units a nanosecond, alone
  double speed_ = 1;        ///< units a nanosecond, now
  std::uint64_t unplaced_ = 0;
  std::uint64_t resident_ = 0;
  std::uint64_t full_wave_ = 1;
};

}  // namespace bubblesim::gpu
