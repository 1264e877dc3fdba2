#include "sim/advise/trial_log.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace bubblesim::advise {
namespace {

constexpr double kLongEnough = 1.0 / 3;  // of the searched length, for a comparison of policies
constexpr std::size_t kAtOnce = 16;      // trials before the budget is looked at again
constexpr double kLatencyMargin = 20;    // times that of training
constexpr int kWarmupPart = 4;           // of a shortened trial, one so-manieth warms up

std::string text_of(const Trial& trial) {
  return proposal_text(trial.proposal) + " " + std::to_string(trial.length.count()) + " " +
         std::to_string(trial.warmup.count()) + " " + std::to_string(trial.seed) + " " +
         std::to_string(trial.slowdown);
}

}  // namespace

Limits tightened(const Limits& limits, double margin) {
  Limits out = with_latencies_scaled(limits, 1 - kLatencyMargin * margin);
  out.keep = std::min(1.0, out.keep + margin);
  return out;
}

TrialLog::TrialLog(const Space& space, const TryAll& try_all, const SearchOptions& options)
    : space_(space), try_all_(try_all), full_(options.full), confirmed_at_(options.confirmed_at),
      longest_warmup_(options.full.warmup) {
  if (confirmed_at_ == ConfirmedAt::kAffordedLength) {  // this warm-up is a default
    const Duration measured = full_.length - full_.warmup;
    full_.warmup = std::min(full_.warmup, measured / (kWarmupPart - 1));
    full_.length = full_.warmup + measured;
  }
  length_ = full_.length;
  warmup_ = full_.warmup;
}

void TrialLog::allow(double events) {
  allowed_ = events;
  exhausted_ = false;
}

void TrialLog::shorten(Duration length, double times) {
  length_ = length;
  warmup_ = std::min(length / kWarmupPart, longest_warmup_);
  if (confirmed_at_ == ConfirmedAt::kAskedLength) return;
  if (confirmed_at_ == ConfirmedAt::kSearchedLength) times = 1;
  using std::chrono::milliseconds;
  const auto longer = [times](Duration span) {
    return Duration{std::chrono::floor<milliseconds>(scale(span, times))};
  };
  full_.length = std::min(longer(length_), full_.length);
  full_.warmup = std::min(longer(warmup_), full_.warmup);
}

bool TrialLog::settles(const Proposal& proposal) const {
  return settling_of(proposal, full_.iteration) <= longest_warmup_;
}

Duration TrialLog::part_measured(double part) const {
  return std::min(std::max(scale(measured(), part), full_.shortest), measured());
}

Trial TrialLog::trial(const Proposal& proposal, double part) const {
  Trial trial;
  trial.proposal = proposal;
  trial.warmup = std::min(std::max(scale(warmup_, part), full_.shortest / kWarmupPart), warmup_);
  trial.length = trial.warmup + part_measured(part);
  trial.seed = full_.seed;
  return settled(std::move(trial), full_.iteration);
}

Trial TrialLog::full_trial(const Proposal& proposal) const {
  return settled({proposal, full_.length, full_.warmup, full_.seed}, full_.iteration);
}

Result<std::vector<Tried>> TrialLog::try_out(const std::vector<Proposal>& proposals, double part) {
  std::vector<Trial> trials;
  for (const Proposal& proposal : proposals) trials.push_back(trial(proposal, part));
  return run(trials);
}

Result<std::vector<Tried>> TrialLog::try_full(const std::vector<Proposal>& proposals) {
  std::vector<Trial> trials;
  for (const Proposal& proposal : proposals) trials.push_back(full_trial(proposal));
  return run(trials);
}

Result<std::vector<Tried>> TrialLog::run(const std::vector<Trial>& trials) {
  std::vector<Trial> judged;  // the others would show what a policy does before it has settled
  for (const Trial& trial : trials) {
    if (settles(trial.proposal)) judged.push_back(trial);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, try_again(judged));
  auto next = results.begin();
  std::vector<Tried> tried;
  for (const Trial& trial : trials) {
    const Proposal& proposal = trial.proposal;
    TrialResult result;
    if (settles(proposal)) result = *next++;
    else result.reason = "its policy settles after the warm-up";
    tried.push_back({proposal, result, space_.is_available(proposal), trial.length, trial.warmup});
    note(tried.back());
  }
  return tried;
}

Result<std::vector<TrialResult>> TrialLog::try_again(const std::vector<Trial>& trials) {
  std::vector<TrialResult> results;
  for (std::size_t next = 0; next < trials.size();) {
    BUBBLESIM_RETURN_IF_ERROR(run_some(trials, next, results));
  }
  return results;
}

Result<void> TrialLog::run_some(const std::vector<Trial>& trials, std::size_t& next,
                                std::vector<TrialResult>& results) {
  std::vector<Trial> allowed;
  std::vector<std::size_t> places;  // into `results`
  double cost = 0;
  for (; next < trials.size() && allowed.size() < kAtOnce; ++next) {
    const Trial& trial = trials[next];
    TrialResult& result = results.emplace_back();
    if (const auto known = results_.find(text_of(trial)); known != results_.end()) {
      result = known->second;
    } else if (spent_ + cost + cost_of(trial) > allowed_) {
      result.reason = "the budget does not reach";
      leave_out(trial);
    } else {
      cost += cost_of(trial);
      places.push_back(results.size() - 1);
      allowed.push_back(trial);
    }
  }
  if (allowed.empty()) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> run, try_all_(allowed));
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    count(allowed[i], run[i]);
    results[places[i]] = run[i];
  }
  return {};
}

TrialLog::PolicyCost& TrialLog::cost_of_policy(const Trial& trial) {
  const auto known = std::ranges::find(costs_, trial.proposal.policy, &PolicyCost::policy);
  return known != costs_.end() ? *known : costs_.emplace_back(PolicyCost{trial.proposal.policy});
}

double TrialLog::cost_of(const Trial& trial) {
  const double rate = cost_of_policy(trial).rate;
  return to_seconds(trial.length) * (rate > 0 ? rate : highest_rate_);
}

void TrialLog::leave_out(const Trial& trial) {
  exhausted_ = exhausted_ || trial.length <= full_.length;
  if (!space_.is_available(trial.proposal)) return;
  const double cost = cost_of(trial);
  std::optional<double>& cheapest = cost_of_policy(trial).left_out;
  cheapest = std::min(cheapest.value_or(cost), cost);
}

std::vector<Unafforded> TrialLog::unafforded() const {
  std::vector<Unafforded> out;
  for (const PolicyCost& cost : costs_) {
    if (cost.rate == 0 && cost.left_out) out.push_back({cost.policy, *cost.left_out});
  }
  return out;
}

void TrialLog::count(const Trial& trial, const TrialResult& result) {
  ++trials_;
  spent_ += result.events;
  if (result.done) {
    results_.try_emplace(text_of(trial), result);
    const double rate = result.events / to_seconds(trial.length);
    highest_rate_ = std::max(highest_rate_, rate);
    double& of_policy = cost_of_policy(trial).rate;
    of_policy = std::max(of_policy, rate);
  }
  if (trial.length - trial.warmup > measured()) spent_on_longer_ += result.events;
}

void TrialLog::note(const Tried& tried) {
  const auto [at, fresh] = index_.try_emplace(proposal_text(tried.proposal), all_.size());
  if (fresh) {
    all_.push_back(tried);
    return;
  }
  Tried& known = all_[at->second];
  const bool better_known = tried.length >= known.length || !known.result.done;
  if (tried.result.done && better_known) known = tried;
}

std::vector<Unsettled> TrialLog::unsettled() const {
  std::vector<Unsettled> out;
  for (const Tried& tried : all_) {
    const auto same = [&tried](const auto& other) {
      return other.proposal.policy == tried.proposal.policy;
    };
    const auto judged = [&](const Tried& other) {
      return same(other) && (other.result.done || settles(other.proposal));
    };
    const bool known = std::ranges::any_of(
        out, [&tried](const Unsettled& one) { return one.policy == tried.proposal.policy; });
    if (known || !tried.available || std::ranges::any_of(all_, judged)) continue;
    const auto soonest = std::ranges::min_element(all_, {}, [&](const Tried& other) {
      return same(other) ? settling_of(other.proposal, full_.iteration) : Duration::max();
    });
    out.push_back({tried.proposal.policy, settling_of(soonest->proposal, full_.iteration)});
  }
  return out;
}

std::vector<Tried> TrialLog::best_by_policy(const Limits& limits, Which reach,
                                            std::size_t most) const {
  const Duration long_enough = part_measured(kLongEnough);
  std::vector<std::pair<Tried, bool>> pool;  // whether tried for long
  for (const Tried& tried : all_) {
    const bool wanted = tried.available == (reach == Which::kAvailable);
    if (wanted && tried.result.done) pool.emplace_back(tried, tried.measured() >= long_enough);
  }
  std::ranges::stable_sort(pool, [&limits](const auto& left, const auto& right) {
    if (left.second != right.second) return left.second;
    return is_better(left.first.result, right.first.result, limits);
  });
  std::vector<Tried> out;
  std::set<std::string> policies;
  for (const auto& [tried, longest] : pool) {
    if (out.size() < most && policies.insert(tried.proposal.policy->name).second) {
      out.push_back(tried);
    }
  }
  return out;
}

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
    trials.back().length = scale(trials.back().length, factor);
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
