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

// Slices follow each other from the start of the turn; the first one that ends after `instant`.
SimTime TimeSlicer::slice_end_after(SimTime turn_start, SimTime instant) const {
  const Duration slice = slices_[*owner_];
  return turn_start + slice * ((instant - turn_start) / slice + 1);
}

// Precondition: another context has work, so turn_end_ is set.
SimTime TimeSlicer::yield_at() const {
  return dry() ? std::min(dry_since_ + linger_, turn_end_) : turn_end_;
}

void TimeSlicer::begin_turn(std::size_t context, SimTime now) {
  owner_ = context;
  switching_ = false;
  turn_start_ = now;
  turn_end_ = contender() ? now + slices_[context] : SimTime::max();
}

void TimeSlicer::take_back() {
  owner_ = yielded_->context;
  switching_ = false;
  turn_start_ = yielded_->turn_start;
  turn_end_ = yielded_->turn_end;
  yielded_.reset();
}

void TimeSlicer::gets_work(std::size_t context, SimTime now) {
  const bool was_dry = dry();
  has_work_[context] = true;
  if (!owner_) return begin_turn(context, now);
  if (context == *owner_) {
    // A stream goes on in the turn that it had; after true idleness a new turn begins.
    if (was_dry && now > dry_since_ + linger_) begin_turn(context, now);
    return;
  }
  if (yielded_ && yielded_->context == context && yielded_->at == now) return take_back();
  if (was_dry && now > dry_since_ + linger_) return begin_turn(context, now);
  if (!switching_ && turn_end_ == SimTime::max()) turn_end_ = slice_end_after(turn_start_, now);
}

void TimeSlicer::runs_dry(SimTime now) {
  has_work_[*owner_] = false;
  dry_since_ = now;
}

// As if it had run dry so long ago that nobody waits for more from it.
void TimeSlicer::driven_off(std::size_t context, SimTime now) {
  has_work_[context] = false;
  if (context == *owner_) dry_since_ = now - linger_;
}

void TimeSlicer::pass_on(std::size_t to, SimTime now) {
  yielded_.reset();
  if (dry() && now < turn_end_) yielded_ = Yielded{*owner_, now, turn_start_, turn_end_};
  owner_ = to;
  if (switch_cost_ == Duration::zero()) return begin_turn(to, now);
  switching_ = true;
  switch_end_ = now + switch_cost_;
}

void TimeSlicer::advance(SimTime now) {
  if (!owner_) return;
  if (switching_) {
    if (now < switch_end_) return;
    begin_turn(*owner_, now);  // and passes it on at once if the context was driven off meanwhile
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
