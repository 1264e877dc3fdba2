#include "policies/training_watch.hpp"

#include <algorithm>

namespace bubblesim::policies {
namespace {

using namespace policy;

/// A kernel is overdue after this many times its own duration: durations vary by less.
constexpr int kOverdue = 2;
/// The hash of a context is a polynomial of its eight keys in this factor.
constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ULL;
constexpr std::uint64_t kFactor4 = kFactor * kFactor * kFactor * kFactor;
/// The weight of a longer bubble of the same context is 1 over this: bubbles have several lengths.
constexpr int kSlowly = 8;

}  // namespace

void TrainingWatch::launch(const LaunchInfo& launch, Instant now) {
  if (!is_kernel(launch.kind) || launch.operations == 0) return;
  Launch entry{launch.launch,     kernel_key(launch), context_, place_,
               launch.operations, launch.kind == WorkKind::kKernel, now};
  if (entry.computes) {
    ++kernels_;
    ++place_;
    note_kernel(entry.key);
  }
  queue_.push_back(entry);
  settle(now);
}

void TrainingWatch::complete(const CompletionInfo& completion, bool disturbed, Instant now) {
  const auto launch = std::ranges::find(queue_, completion.launch, &Launch::number);
  delay_.reset();
  if (launch == queue_.end() || launch->operations == 0) return;
  if (--launch->operations > 0) return;
  const auto order = first_ + static_cast<std::uint64_t>(launch - queue_.begin());
  if (launch->computes) {
    --kernels_;
    learn(*launch, disturbed, now);
    last_end_ = now;
  } else if (order < next_ || kernels_ == 0) {
    last_collective_ = now;
  }
  while (!queue_.empty() && queue_.front().operations == 0) {
    queue_.pop_front();
    ++first_;
  }
  settle(now);
}

void TrainingWatch::learn(const Launch& kernel, bool disturbed, Instant now) {
  const Instant ready = std::max(kernel.launched, last_end_.value_or(Instant{}));
  if (!disturbed && last_collective_ > ready) {
    times_.observe_after_collective(kernel.key, now - last_collective_);
  }
  const Duration span = times_.observe(kernel.key, now - ready);
  if (!last_end_) return;
  if (kernel.place < gaps_.size() && gaps_[kernel.place] >= Duration{}) {
    delay_ = now - *last_end_ - span - gaps_[kernel.place];
  }
  const Duration idle = std::max(Duration{}, now - span - *last_end_);
  if (kernel.place >= gaps_.size()) gaps_.resize(kernel.place + 1, Duration{-1});
  Duration& gap = gaps_[kernel.place];
  gap = disturbed && gap >= Duration{} ? std::min(gap, idle) : idle;
  const auto [context, is_new] = gaps_by_context_.try_emplace(kernel.context, idle);
  Duration& known = context->second;
  if (is_new || idle < known) {
    known = idle;
  } else if (!disturbed) {
    known += (idle - known) / kSlowly;
  }
}

const TrainingWatch::Launch* TrainingWatch::next_kernel() {
  next_ = std::max(next_, first_);
  while (next_ - first_ < queue_.size()) {
    const Launch& launch = queue_[next_ - first_];
    if (launch.computes && launch.operations > 0) return &launch;
    ++next_;
  }
  return nullptr;
}

std::optional<Duration> TrainingWatch::known_gap(std::size_t place, std::uint64_t context) const {
  if (place < gaps_.size() && gaps_[place] >= Duration{}) return gaps_[place];
  const auto found = gaps_by_context_.find(context);
  if (found == gaps_by_context_.end()) return std::nullopt;
  return found->second;
}

void TrainingWatch::settle(Instant now) {
  overdue_at_.reset();
  const Launch* next = next_kernel();
  const Instant idle_from = last_end_.value_or(Instant{});
  if (next == nullptr) return begin_bubble(idle_from, known_gap(place_, context_));
  // The unfinished work before the next kernel is a collective.
  const bool behind_collective = next_ != first_;
  if (!behind_collective) {
    computes_ = true;
    return;
  }
  const std::optional<Duration> gap = known_gap(next->place, next->context);
  if (gap && *gap >= shortest_) return begin_bubble(idle_from, gap);
  const std::optional<Duration> span = times_.time_of(next->key);
  const Instant overdue =
      std::max(next->launched, idle_from) + shortest_ + span.value_or(Duration{}) * kOverdue;
  if (span && now >= overdue) return begin_bubble(overdue, std::nullopt);
  if (span) overdue_at_ = overdue;
  computes_ = true;
}

void TrainingWatch::begin_bubble(Instant since, std::optional<Duration> length) {
  if (computes_ || since > bubble_begin_) bubble_begin_ = since;
  computes_ = false;
  expected_end_.reset();
  if (length) expected_end_ = last_end_.value_or(Instant{}) + *length;
}

// The hash is a polynomial of the last keys: a new key replaces the oldest one.
void TrainingWatch::note_kernel(std::uint64_t key) {
  std::uint64_t& oldest = recent_[recent_at_++ % recent_.size()];
  context_ = context_ * kFactor + key - oldest * (kFactor4 * kFactor4);
  oldest = key;
}

}  // namespace bubblesim::policies
