#include "sim/gpu/waves.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::gpu {
namespace {

// Ended cohorts at the front of the vector are dropped when there are this many.
constexpr std::size_t kDropAfter = 32;

}  // namespace

void Waves::reset(std::uint64_t blocks) {
  cohorts_.clear();
  head_ = 0;
  progress_ = 0;
  place_from_ = 0;
  unplaced_ = blocks;
  resident_ = 0;
}

void Waves::start(Duration solo, std::uint64_t blocks, std::uint64_t capacity) {
  // Blocks without duration need no waves.
  if (solo <= Duration::zero()) blocks = std::min(blocks, capacity);
  reset(blocks);
  full_wave_ = std::min(blocks, capacity);
  waves_ = count(blocks, capacity);
  wave_units_ = static_cast<double>(solo.count());
  speed_ = waves_;
}

void Waves::hold(std::uint64_t blocks) {
  reset(blocks);
  full_wave_ = blocks;
  waves_ = 1;
  wave_units_ = kNever;
  speed_ = 1;
}

// Blocks that follow blocks of their own kernel begin at the exact end of those, not at the event,
// which was rounded to a nanosecond: so rounding does not add up from wave to wave.
void Waves::place(std::uint64_t blocks) {
  unplaced_ -= blocks;
  resident_ += blocks;
  if (wave_units_ != kNever) push(place_from_ + wave_units_, blocks);
}

void Waves::limit(std::uint64_t blocks) {
  unplaced_ = blocks > resident_ ? std::min(unplaced_, blocks - resident_) : 0;
}

void Waves::push(double end, std::uint64_t blocks) {
  if (head_ >= kDropAfter) {
    cohorts_.erase(cohorts_.begin(), cohorts_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  if (head_ < cohorts_.size() && cohorts_.back().end >= end) {
    cohorts_.back().blocks += blocks;
  } else {
    cohorts_.push_back({end, blocks});
  }
}

// Skips all rounds in which waiting blocks replaced every resident block.
void Waves::skip_full_rounds() {
  const double head_end = cohorts_[head_].end;
  if (unplaced_ < 2 * resident_ || wave_units_ <= 0 || progress_ < head_end + wave_units_) return;
  const double passed = std::floor((progress_ - head_end) / wave_units_);
  const auto possible = static_cast<double>(unplaced_ / resident_);
  const double rounds = std::min(passed, possible);
  for (std::size_t i = head_; i < cohorts_.size(); ++i) cohorts_[i].end += rounds * wave_units_;
  unplaced_ -= static_cast<std::uint64_t>(rounds) * resident_;
}

// As in pass_ends(). Most kernels are like this.
Waves::Passed Waves::pass_last(Duration span) {
  const double moved = static_cast<double>(span.count()) * speed_;
  progress_ += moved;
  place_from_ = progress_;
  double block_units = static_cast<double>(resident_) * moved;
  const Cohort last = cohorts_[head_];
  if (!due(last.end)) return {0, block_units / speed_};
  cohorts_.clear();
  head_ = 0;
  resident_ = 0;
  block_units -= static_cast<double>(last.blocks) * std::max(0.0, progress_ - last.end);
  if (progress_ - last.end < speed_) place_from_ = last.end;
  return {last.blocks, block_units / speed_};
}

Waves::Passed Waves::pass_ends(Duration span, Refill refill) {
  if (unplaced_ == 0 && head_ + 1 == cohorts_.size() && span > Duration::zero()) {
    return pass_last(span);
  }
  if (span <= Duration::zero() && (head_ >= cohorts_.size() || !due(cohorts_[head_].end))) {
    return {};
  }
  const double moved = static_cast<double>(span.count()) * speed_;
  if (span > Duration::zero()) place_from_ = progress_ + moved;
  progress_ += moved;
  Passed passed;
  double block_units = static_cast<double>(resident_) * moved;
  const bool any_due = head_ < cohorts_.size() && due(cohorts_[head_].end);
  if (any_due && refill == Refill::kSelf) skip_full_rounds();
  while (head_ < cohorts_.size() && due(cohorts_[head_].end)) {
    const Cohort ended = cohorts_[head_++];
    if (head_ == cohorts_.size()) {
      cohorts_.clear();
      head_ = 0;
    }
    const std::uint64_t next = refill == Refill::kSelf ? std::min(ended.blocks, unplaced_) : 0;
    const std::uint64_t gone = ended.blocks - next;
    unplaced_ -= next;
    resident_ -= gone;
    passed.freed += gone;
    block_units -= static_cast<double>(gone) * std::max(0.0, progress_ - ended.end);
    if (progress_ - ended.end < speed_) place_from_ = ended.end;
    if (next > 0) push(ended.end + wave_units_, next);
  }
  passed.block_ns = block_units / speed_;
  return passed;
}

// Full rounds first, keeping 1..resident blocks for the last one; the last blocks begin when enough
// cohorts have ended to make room for all of them. Precondition: some blocks wait, some run.
double Waves::last_placed() const {
  const std::uint64_t rounds = unplaced_ > resident_ ? (unplaced_ - 1) / resident_ : 0;
  std::uint64_t left = unplaced_ - rounds * resident_;
  std::size_t i = head_;
  while (cohorts_[i].blocks < left) left -= cohorts_[i++].blocks;
  return cohorts_[i].end + static_cast<double>(rounds) * wave_units_;
}

}  // namespace bubblesim::gpu
