#include "policies/training_pace.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::policies {
namespace {

/// A job that does not repeat within so many kernels has no period: memory is bounded.
constexpr std::size_t kMostKeys = std::size_t{1} << 18U;
/// An iteration so much longer may be of another kind: an evaluation, a checkpoint, a pipeline's
/// flush. Of it, fillers of this GPU cost no more than the time that they were in the way.
constexpr double kOtherKind = 1.5;

}  // namespace

// The failure function of Knuth, Morris and Pratt over the later half, from its end: whatever the
// job did while it warmed up does not count.
std::size_t repeating_period(std::span<const std::uint64_t> keys) {
  const std::size_t n = keys.size() / 2;
  if (n < 2) return 0;
  const auto at = [&](std::size_t i) { return keys[keys.size() - 1 - i]; };
  std::vector<std::size_t> border(n + 1, 0);
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t k = border[i];
    while (k > 0 && at(i) != at(k)) k = border[k];
    border[i + 1] = at(i) == at(k) ? k + 1 : 0;
  }
  const std::size_t period = n - border[n];
  return 2 * period <= n ? period : 0;
}

bool TrainingPace::launch(std::uint64_t key, policy::Instant now) {
  if (marked_) return false;
  if (period_ > 0) {
    phase_ = (phase_ + 1) % period_;
    return phase_ == 0;
  }
  if (keys_.size() == kMostKeys) return false;
  keys_.push_back(key);
  if (now < alone_ / 2) return false;
  period_ = repeating_period(keys_);
  keys_.assign(period_ > 0 ? 0 : kMostKeys, 0);
  return period_ > 0;
}

std::optional<Duration> TrainingPace::end_iteration(bool filled, Duration exposed,
                                                    Duration charged, policy::Instant now) {
  const std::optional<policy::Instant> begin = std::exchange(begin_, now);
  if (!begin) return std::nullopt;
  const Duration length = now - *begin;
  if (!filled) {
    // Later, other GPUs of the job may have fillers while this one has none.
    if (!measures(*begin)) {
      if (!reference_ || bounded_) reference_ = length;
      bounded_ = false;
      return std::nullopt;
    }
    reference_ = reference_.value_or(Duration{}) * quiet_ / (quiet_ + 1) + length / (quiet_ + 1);
    ++quiet_;
    return std::nullopt;
  }
  if (reference_ && length > scale(*reference_, kOtherKind)) {
    return std::min(length - *reference_, exposed);
  }
  if (reference_ && !bounded_) return length - *reference_;
  const Duration bound = length - charged;
  reference_ = reference_ ? std::max(*reference_, bound) : bound;
  bounded_ = true;
  return length - *reference_;
}

}  // namespace bubblesim::policies
