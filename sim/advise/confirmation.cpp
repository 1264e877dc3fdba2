#include "sim/advise/confirmation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bubblesim::advise {
namespace {

constexpr std::size_t kSeedsFirst = 2;                  // they show whether seeds matter
constexpr std::array<double, 3> kWindows{1.25, 1.5, 2};  // of the asked length
constexpr double kBeyondInWindow = 0.001;               // of a limit

bool same_figures(const TrialResult& left, const TrialResult& right) {
  return left.kept == right.kept && left.gain == right.gain && left.p95 == right.p95 &&
         left.requests_per_s == right.requests_per_s && left.tokens == right.tokens &&
         left.offered_per_s == right.offered_per_s;
}

Result<void> add_seeds(const Proposal& proposal, std::size_t until, const Limits& limits,
                       TrialLog& log, Confirmation& confirmed) {
  std::vector<Trial> trials;
  for (std::size_t i = confirmed.seeds.size() + 1; i <= until; ++i) {
    trials.push_back(log.full_trial(proposal));
    trials.back().seed += i;
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, log.try_again(trials));
  for (const TrialResult& result : results) {
    if (!result.done) continue;
    confirmed.seeds.push_back(result);
    if (violation(result, limits) > 0) ++confirmed.broke;
  }
  return {};
}

Result<void> add_windows(const Proposal& proposal, const Limits& limits, TrialLog& log,
                         Confirmation& confirmed) {
  std::vector<Trial> trials;
  for (const double factor : kWindows) {
    trials.push_back(log.full_trial(proposal));
    Duration& length = trials.back().length;
    length = Duration{std::llround(static_cast<double>(length.count()) * factor)};
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, log.try_again(trials));
  for (const TrialResult& result : results) {
    if (!result.done) continue;
    confirmed.windows.push_back(result);
    if (violation(result, limits) > kBeyondInWindow) ++confirmed.broke;
  }
  return {};
}

}  // namespace

double break_rate(const Confirmation& confirmed) {
  if (!confirmed.random && confirmed.broke == 0) return 0;
  const std::size_t tries = confirmed.random ? confirmed.seeds.size() : confirmed.windows.size();
  return static_cast<double>(confirmed.broke + 1) / static_cast<double>(tries + 2);
}

Result<Confirmation> confirm(const Tried& setting, const Limits& limits, TrialLog& log) {
  Confirmation confirmed;
  const Proposal& proposal = setting.proposal;
  BUBBLESIM_RETURN_IF_ERROR(add_seeds(proposal, kSeedsFirst, limits, log, confirmed));
  confirmed.random =
      confirmed.seeds.size() < kSeedsFirst ||
      !std::ranges::all_of(confirmed.seeds, [&setting](const TrialResult& result) {
        return same_figures(result, setting.result);
      });
  if (confirmed.random) {
    BUBBLESIM_RETURN_IF_ERROR(add_seeds(proposal, kSeedsConfirmed, limits, log, confirmed));
  } else {
    BUBBLESIM_RETURN_IF_ERROR(add_windows(proposal, limits, log, confirmed));
  }
  return confirmed;
}

Result<void> vary_durations(const Proposal& proposal, TrialLog& log, Confirmation& confirmed) {
  std::vector<Trial> trials(2, log.full_trial(proposal));
  trials[0].slowdown = 1 + kDurationsVaried;
  trials[1].slowdown = 1 - kDurationsVaried;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, log.try_again(trials));
  if (results[0].done) confirmed.slower.push_back(results[0]);
  if (results[1].done) confirmed.faster.push_back(results[1]);
  return {};
}

}  // namespace bubblesim::advise
