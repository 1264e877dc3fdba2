#include "policies/training_pace.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace bubblesim::policies {
namespace {

/// A job that does not repeat within this many kernels counts as having no period, which bounds the
/// memory.
constexpr std::size_t kMostKeys = std::size_t{1} << 18U;
/// An iteration this many times as long may be of another kind (an evaluation, a checkpoint, a
/// pipeline's flush), unless fillers can spend that much at once. Then the cost of this GPU's
/// fillers is at most the time for which they were in the way.
constexpr double kOtherKind = 1.5;
/// If fillers were in the way for less than this fraction of an iteration (kernels that ran into
/// it), they do not count. A GPU that waited for a cleaner iteration than the job's others would
/// measure one that has their fillers.
constexpr int kNegligible = 100;

}  // namespace

// The failure function of Knuth, Morris and Pratt over the later half, from its end, so that
// warm-up does not count.
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

std::size_t repeating_lengths(std::span<const Duration> lengths) {
  constexpr std::size_t kMostTurn = 64;
  const std::size_t n = lengths.size();
  const auto alike = [](Duration a, Duration b) { return 100 * std::chrono::abs(a - b) <= b; };
  for (std::size_t turn = 1; turn <= kMostTurn && 2 * turn <= n; ++turn) {
    bool repeats = true;
    for (std::size_t i = std::max(n / 2, turn); i < n; ++i) {
      repeats &= alike(lengths[i], lengths[i - turn]);
    }
    if (repeats) return turn;
  }
  return 0;
}

Duration TrainingPace::spread() const {
  if (quiet_.empty() || !turn_.empty()) return {};
  const auto [shortest, longest] = std::ranges::minmax(quiet_);
  return longest - shortest;
}

void TrainingPace::learn(Duration length) {
  quiet_.push_back(length);
  bounded_ = false;
  Duration sum{};
  for (const Duration quiet : quiet_) sum += quiet;
  reference_ = sum / static_cast<std::int64_t>(quiet_.size());
  const std::size_t turn = repeating_lengths(quiet_);
  turn_.assign(quiet_.end() - static_cast<std::ptrdiff_t>(turn), quiet_.end());
  place_ = 0;
  if (turn > 0) reference_ = std::reduce(turn_.begin(), turn_.end()) / static_cast<int>(turn);
}

bool TrainingPace::is_other_kind(Duration length, Duration expected, Duration at_once) {
  return length > std::max(scale(expected, kOtherKind), expected + at_once);
}

std::optional<Duration> TrainingPace::end_iteration(bool filled, const FillerCost& cost,
                                                    policy::Instant now) {
  const std::optional<policy::Instant> begin = std::exchange(begin_, now);
  if (!begin) return std::nullopt;
  const Duration length = now - *begin;
  filled = filled && kNegligible * cost.exposed > length;
  // Fillers start on all GPUs of a job at about one time, and a pipeline passes delays on: so the
  // iteration under way at that time is disturbed, even if no filler ran here.
  if (!filled && measures(now)) {
    learn(length);
    return std::nullopt;
  }
  const Duration expected = turn_.empty() ? reference_.value_or(Duration{}) : turn_[place_];
  if (!turn_.empty()) place_ = (place_ + 1) % turn_.size();
  // Other GPUs of the job may have fillers while this one has none.
  if (!filled) return compare_undisturbed(length, expected, cost.at_once);
  if (reference_ && is_other_kind(length, expected, cost.at_once)) {
    return std::min(length - expected, cost.exposed);
  }
  if (reference_ && !bounded_) return length - expected;
  // The cost of fillers is an estimate, and lacks the cost of those on other GPUs: so of the
  // disturbed iterations the least disturbed one is used, not the longest.
  if (!reference_ || cost.exposed < bound_exposed_) {
    reference_ = length - cost.charged;
    bound_exposed_ = cost.exposed;
  }
  bounded_ = true;
  return length - *reference_;
}

// It counts like all others; else the natural variation of iterations would not average out.
std::optional<Duration> TrainingPace::compare_undisturbed(Duration length, Duration expected,
                                                          Duration at_once) {
  if (reference_ && !bounded_) {
    return is_other_kind(length, expected, at_once) ? Duration{} : length - expected;
  }
  reference_ = length;
  bounded_ = false;
  return std::nullopt;
}

}  // namespace bubblesim::policies
