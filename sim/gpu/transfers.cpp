#include "sim/gpu/transfers.hpp"

#include <algorithm>

namespace bubblesim::gpu {

void Transfers::add_copy(WorkId work, Duration length) { waiting_.push_back({work, length}); }

void Transfers::add_memset(WorkId work, Duration length, SimTime now) {
  running_.push_back({now + length, work, false});
}

bool Transfers::take_ended(SimTime now, WorkId& work) {
  if (running_.empty()) return false;
  const auto first = std::min_element(running_.begin(), running_.end(),
                                      [](const auto& a, const auto& b) { return a.end < b.end; });
  if (first->end > now) return false;
  work = first->work;
  if (first->holds_engine) ++free_engines_;
  running_.erase(first);
  return true;
}

bool Transfers::take_started(SimTime now, WorkId& work) {
  if (head_ == waiting_.size() || free_engines_ == 0) return false;
  const Waiting next = waiting_[head_++];
  if (head_ == waiting_.size()) {
    waiting_.clear();
    head_ = 0;
  } else if (head_ * 2 > waiting_.size()) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  --free_engines_;
  running_.push_back({now + next.length, next.work, true});
  work = next.work;
  return true;
}

SimTime Transfers::next_end() const {
  SimTime next = SimTime::max();
  for (const Running& running : running_) next = std::min(next, running.end);
  return next;
}

}  // namespace bubblesim::gpu
