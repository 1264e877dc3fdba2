#include "sim/advise/trial_log.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace bubblesim::advise {
namespace {

constexpr double kLongEnough = 1.0 / 3;  // of the searched length, for a comparison of policies
constexpr std::size_t kAtOnce = 16;      // trials before the budget is looked at again
constexpr std::size_t kJudgedAnyway = 4;  // policies, doing nothing among them, of any budget
constexpr double kLatencyMargin = 20;    // times that of training

Duration part_of(Duration span, double part) {
  return Duration{std::llround(static_cast<double>(span.count()) * part)};
}

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
      length_(options.full.length), warmup_(options.full.warmup) {}

void TrialLog::allow(double events) {
  allowed_ = events;
  exhausted_ = false;
}

void TrialLog::shorten(Duration length, Duration warmup, double times) {
  length_ = length;
  warmup_ = warmup;
  if (confirmed_at_ == ConfirmedAt::kAskedLength) return;
  if (confirmed_at_ == ConfirmedAt::kSearchedLength) times = 1;
  using std::chrono::milliseconds;
  const auto longer = [times](Duration span) {
    return Duration{std::chrono::floor<milliseconds>(part_of(span, times))};
  };
  full_.length = std::min(longer(length), full_.length);
  full_.warmup = std::min(longer(warmup), full_.warmup);
}

Trial TrialLog::trial(const Proposal& proposal, double part) const {
  Trial trial;
  trial.proposal = proposal;
  const Duration measured = std::max(part_of(length_ - warmup_, part), full_.shortest);
  const Duration warm = std::max({part_of(warmup_, part), full_.shortest / 4, settling(proposal)});
  trial.warmup = std::min(warm, warmup_);
  trial.length = std::min(trial.warmup + measured, length_);
  trial.seed = full_.seed;
  return trial;
}

Duration TrialLog::settling(const Proposal& proposal) const {
  const bool settles = proposal.policy != nullptr && proposal.policy->settling;
  return settles ? proposal.policy->settling(parameters_of(proposal), full_.iteration)
                 : Duration{};
}

Trial TrialLog::full_trial(const Proposal& proposal) const {
  return {proposal, full_.length, full_.warmup, full_.seed};
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
    if (settling(trial.proposal) <= trial.warmup) judged.push_back(trial);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, try_again(judged));
  auto next = results.begin();
  std::vector<Tried> tried;
  for (const Trial& trial : trials) {
    const Proposal& proposal = trial.proposal;
    const bool is_judged = settling(proposal) <= trial.warmup;
    TrialResult result;
    if (is_judged) result = *next++;
    else result.reason = "its policy settles after the warm-up";
    tried.push_back({proposal, result, space_.is_available(proposal), trial.length});
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
    } else if (spent_ + cost + cost_of(trial) > allowed_ && !is_judged_anyway(trial)) {
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

bool TrialLog::is_judged_anyway(const Trial& trial) {
  return judged_anyway_.size() < kJudgedAnyway &&
         judged_anyway_.insert(trial.proposal.policy).second;
}

double TrialLog::cost_of(const Trial& trial) const {
  const auto known = rates_.find(trial.proposal.policy);
  return to_seconds(trial.length) * (known == rates_.end() ? highest_rate_ : known->second);
}

void TrialLog::leave_out(const Trial& trial) {
  exhausted_ = true;
  if (!space_.is_available(trial.proposal)) return;
  const double cost = cost_of(trial);
  const auto same = std::ranges::find(left_out_, trial.proposal.policy, &Unafforded::policy);
  if (same == left_out_.end()) left_out_.push_back({trial.proposal.policy, cost});
  else same->events = std::min(same->events, cost);
}

std::vector<Unafforded> TrialLog::unafforded() const {
  std::vector<Unafforded> out = left_out_;
  std::erase_if(out, [this](const Unafforded& policy) { return rates_.contains(policy.policy); });
  return out;
}

void TrialLog::count(const Trial& trial, const TrialResult& result) {
  ++trials_;
  spent_ += result.events;
  if (result.done) {
    results_.try_emplace(text_of(trial), result);
    const double rate = result.events / to_seconds(trial.length);
    highest_rate_ = std::max(highest_rate_, rate);
    double& of_policy = rates_[trial.proposal.policy];
    of_policy = std::max(of_policy, rate);
  }
  if (trial.length > length_) spent_on_longer_ += result.events;
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
      return same(other) && (other.result.done || settling(other.proposal) <= warmup_);
    };
    const bool known = std::ranges::any_of(
        out, [&tried](const Unsettled& one) { return one.policy == tried.proposal.policy; });
    if (known || !tried.available || std::ranges::any_of(all_, judged)) continue;
    const auto soonest = std::ranges::min_element(all_, {}, [&](const Tried& other) {
      return same(other) ? settling(other.proposal) : Duration::max();
    });
    out.push_back({tried.proposal.policy, settling(soonest->proposal)});
  }
  return out;
}

std::vector<Tried> TrialLog::best_by_policy(const Limits& limits, Which reach,
                                            std::size_t most) const {
  const Duration long_enough = trial({}, kLongEnough).length;
  std::vector<std::pair<Tried, bool>> pool;  // whether tried for long
  for (const Tried& tried : all_) {
    const bool wanted = tried.available == (reach == Which::kAvailable);
    if (wanted && tried.result.done) pool.emplace_back(tried, tried.length >= long_enough);
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

}  // namespace bubblesim::advise
