#include "sim/gpu/time_slicer.hpp"

#include <algorithm>

namespace bubblesim::gpu {

// The next context with work, in round-robin order after the owner.
std::optional<std::size_t> TimeSlicer::contender() const {
  const std::size_t count = has_work_.size();
  const std::size_t from = owner_.value_or(count - 1);
  for (std::size_t step = 1; step <= count; ++step) {
    const std::size_t context = (from + step) % count;
    if (context != owner_ && has_work_[context]) return context;
  }
  return std::nullopt;
}

SimTime TimeSlicer::yield_at() const { return dry() ? std::min(dry_since_, turn_end_) : turn_end_; }

void TimeSlicer::begin_turn(std::size_t context, SimTime now) {
  owner_ = context;
  switching_ = false;
  turn_end_ = now + slices_[context];
}

// A lone context with further launched work begins slice after slice: its turn ends with the slice
// that contains `now`.
void TimeSlicer::renew_slices(SimTime now) {
  if (lone_slice_ == hardware::LoneSlice::kExpired || now <= turn_end_) return;
  if (!state_.has_more(*owner_)) return;
  const Duration slice = slices_[*owner_];
  turn_end_ = now + slice - (now - turn_end_ - Duration{1}) % slice - Duration{1};
}

// Undoes a turn's end at this instant; false if there was none.
bool TimeSlicer::take_back(std::size_t context, SimTime now) {
  if (!yielded_ || yielded_->context != context || yielded_->at != now) return false;
  owner_ = context;
  switching_ = false;
  turn_end_ = yielded_->turn_end;
  yielded_.reset();
  return true;
}

void TimeSlicer::gets_work(std::size_t context, SimTime now) {
  const bool idle_before = dry() && dry_since_ < now;
  has_work_[context] = true;
  if (!owner_) return begin_turn(context, now);
  if (context == *owner_) {
    if (idle_before && lone_slice_ == hardware::LoneSlice::kRenewed) begin_turn(context, now);
    return;
  }
  if (take_back(context, now)) return;
  if (idle_before) {
    pass_on(context, now);
    yielded_.reset();  // the owner lost its work earlier: no turn's end of this instant to undo
    return;
  }
  if (!switching_ && !dry()) renew_slices(now);
}

void TimeSlicer::runs_dry(std::size_t context, SimTime now) {
  has_work_[context] = false;
  if (context == *owner_ && !announced_[context]) dry_since_ = now;
}

void TimeSlicer::set_announced(std::size_t context, bool announced, SimTime now) {
  if (announced_[context] == announced) return;
  announced_[context] = announced;
  if (announced) {
    take_back(context, now);
  } else if (owner_ == context && !has_work_[context]) {
    dry_since_ = now;
  }
}

Duration TimeSlicer::cost_of(std::size_t from, std::size_t to) const {
  if (cost_.full == cost_.empty) return cost_.full;
  const double cover = std::min(1.0, (state_.cover(from) + state_.cover(to)) / 2);
  return cost_.empty + scale(cost_.full - cost_.empty, cover);
}

void TimeSlicer::pass_on(std::size_t to, SimTime now) {
  yielded_.reset();
  if (dry() && now < turn_end_) yielded_ = Yielded{*owner_, now, turn_end_};
  const Duration cost = cost_of(*owner_, to);
  owner_ = to;
  if (cost == Duration::zero()) return begin_turn(to, now);
  switching_ = true;
  switch_end_ = now + cost;
}

void TimeSlicer::advance(SimTime now) {
  if (!owner_) return;
  if (switching_) {
    if (now < switch_end_) return;
    begin_turn(*owner_, now);  // passes it on at once if the context was driven off meanwhile
  }
  const std::optional<std::size_t> other = contender();
  if (other && now >= yield_at()) pass_on(*other, now);
}

SimTime TimeSlicer::next() const {
  if (switching_) return switch_end_;
  if (!owner_ || !contender()) return SimTime::max();
  return yield_at();
}

}  // namespace bubblesim::gpu
