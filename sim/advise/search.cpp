#include "sim/advise/search.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/advise/trial_log.hpp"

namespace bubblesim::advise {
namespace {

// Lengths of trials, of a full one: the steps of halving, each three times as long.
constexpr double kShortest = 1.0 / 27, kNinth = 1.0 / 9, kThird = 1.0 / 3;
constexpr std::size_t kGoesOn = 4;         // one of so many settings goes on to the next step
constexpr std::size_t kLeaders = 3;        // policies that local searches begin from
constexpr std::size_t kLeadersBeyond = 2;  // and from settings beyond the limits
// Local searches begin from what is best within the limits, and from what is beyond them, a little
// or far, and gains more: one parameter may bring that back.
constexpr std::array<double, 3> kLooserForLeaders{0.002, 0.02, 0.1};
constexpr double kPartOfLeft = 3;  // of the budget of local searches, that the next may spend
constexpr double kPush = 1.12;             // of a load, beyond what keeps the limits
constexpr double kBeyondInShort = 0.05;    // of a limit, that a third of a trial may be
constexpr double kMoved = 0.001;           // a dimension that moves gain or training less is idle
constexpr std::array<double, 6> kFactors{4, 2, 1.4, 1.15, 1.06, 1.02};
constexpr std::size_t kCoarse = 2;  // of these, so many in trials a third as long
constexpr std::array<double, 4> kLoadFactors{1.6, 1.25, 1.1, 1.04};
// Full trials that a whole search costs, by the counts above, and those that confirm what is told.
constexpr double kFullTrials = 75;
constexpr double kConfirmingTrials = 30;
constexpr int kWithWarmup = 2;           // times what a trial measures at least
constexpr double kConfirmingPart = 0.5;  // of the budget, without --duration
// If the shortest full trials cost so many times the budget, only defaults are tried first, two
// policies are finalists, and policies that the system lacks are not among them.
constexpr double kScarce = 1.5;
// Parts of the search's budget that are spent when this step ends; where it is scarce, halving has
// what local searches would.
constexpr double kUntilHalved = 0.5;
constexpr double kUntilLocal = 0.8;

Duration in_milliseconds(Duration span) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(span);
  return std::chrono::duration_cast<Duration>(whole);
}

/// What one map has at the key, or has not, in the other.
template <class Values>
void take_over(const Values& from, const std::string& key, Values& to) {
  if (const auto value = from.find(key); value != from.end()) {
    to[key] = value->second;
  } else {
    to.erase(key);
  }
}

class Searcher {
 public:
  Searcher(const Space& space, const TryAll& try_all, const SearchOptions& options)
      : space_(space), options_(options), log_(space, try_all, options) {}

  Result<Found> run() {
    BUBBLESIM_RETURN_IF_ERROR(fix_length());
    const double until_halved =
        scarce_ ? kUntilLocal * options_.events : kUntilHalved * search_events_;
    log_.allow(until_halved);
    BUBBLESIM_RETURN_IF_ERROR(halve(until_halved));
    log_.allow(kUntilLocal * search_events_);
    BUBBLESIM_RETURN_IF_ERROR(improve_all());
    log_.allow(search_events_ + confirming_events_);
    BUBBLESIM_ASSIGN_OR_RETURN(
        Found found, finals(space_, log_, options_, scarce_ ? Scarce::kYes : Scarce::kNo));
    found.shortened = shortened_;
    found.needed_events = needed_events_;
    found.unafforded = log_.unafforded();
    return found;
  }

 private:
  [[nodiscard]] bool stopped() const { return is_stopped(options_); }

  // By trials of the shortest kind, of a policy that need not settle.
  Result<void> fix_length() {
    const std::vector<Proposal> starts = space_.starts();
    std::vector<Proposal> probes;  // of a policy that lets fillers run
    const policy::PolicySpec* probe = starts.back().policy;
    for (const Proposal& start : starts) {
      if (!start.policy->settling) probe = start.policy;
    }
    for (const Proposal& start : starts) {
      if (start.policy == probe) probes.push_back(start);
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, log_.try_out(probes, kShortest));
    double most = 0;
    for (const Tried& trial : tried) most = std::max(most, trial.result.events);
    const double rate = most / to_seconds(log_.trial(probes.front(), kShortest).length);
    search_events_ = options_.events;
    if (options_.confirmed_at == ConfirmedAt::kAffordedLength) {
      search_events_ *= 1 - kConfirmingPart;
    }
    const double affordable = search_events_ / kFullTrials;
    const auto too_much = [&] { return rate * to_seconds(log_.length()) / affordable; };
    if (too_much() > 1) shorten(1 / too_much(), 5 * options_.full.shortest);
    scarce_ = too_much() > kScarce;
    if (scarce_) {
      needed_events_ = options_.events * too_much() / kScarce;
      shorten(kScarce / too_much(), kWithWarmup * options_.full.shortest);
    }
    plan(rate);
    return {};
  }

  /// What the search may spend, and what confirming may, by the events of a simulated second.
  void plan(double rate) {
    confirming_events_ = kConfirmingTrials * rate * to_seconds(log_.full().length);
    if (options_.confirmed_at == ConfirmedAt::kAffordedLength) {
      confirming_events_ = options_.events - search_events_;
    }
    if (!options_.planned) return;
    options_.planned({log_.length(), log_.full().length, search_events_, confirming_events_});
  }

  /// Trials become `cut` times as long, but not shorter than `least`.
  void shorten(double cut, Duration least) {
    const Duration asked = log_.length();
    least = std::min(asked, least);
    const Duration length = std::min(in_milliseconds(std::max(scale(asked, cut), least)), asked);
    // A trial of the asked length counts as the asked one, which has the asked warm-up.
    if (length == asked) return;
    log_.shorten(length, std::max(1.0, kFullTrials / kConfirmingTrials * cut * to_seconds(asked) /
                                           to_seconds(length)));
    shortened_ = true;
  }

  [[nodiscard]] auto better(double slack) const {
    return [this, slack](const Tried& left, const Tried& right) {
      return is_better(left.result, right.result, options_.limits, slack);
    };
  }

  /// What goes on: the better third, and the best of each policy.
  std::vector<Proposal> survivors(std::vector<Tried> tried, std::size_t count, double slack) const {
    std::ranges::stable_sort(tried, better(slack));
    std::vector<Proposal> out;
    std::set<std::string> policies;
    std::set<std::tuple<std::string, double, double>> seen;  // what moves nothing is the same again
    std::size_t available = 0;
    for (const Tried& trial : tried) {
      const std::string& policy = trial.proposal.policy->name;
      if (!trial.result.done ||
          !seen.emplace(policy, trial.result.gain, trial.result.kept).second) {
        continue;
      }
      const bool first = policies.insert(policy).second;
      const bool good = trial.available && available < count;
      available += good ? 1 : 0;
      if (first || good) out.push_back(trial.proposal);
    }
    return out;
  }

  /// Each policy that can be had, and each oracle, with its defaults at the middle place.
  [[nodiscard]] std::vector<Proposal> defaults_of(const std::vector<Proposal>& starts) const {
    std::map<const policy::PolicySpec*, std::vector<Proposal>> by_policy;
    std::vector<const policy::PolicySpec*> order;
    for (const Proposal& start : starts) {
      const bool wanted = space_.is_available(start) || start.policy->oracle;
      if (!wanted || !start.parameters.empty()) continue;
      std::vector<Proposal>& own = by_policy[start.policy];
      if (own.empty()) order.push_back(start.policy);
      own.push_back(start);
    }
    std::vector<Proposal> out;
    for (const policy::PolicySpec* spec : order) {
      const std::vector<Proposal>& own = by_policy.at(spec);
      out.push_back(own[own.size() / 2]);
    }
    return out;
  }

  Result<void> halve(double until) {
    std::vector<Proposal> proposals = scarce_ ? defaults_of(space_.starts()) : space_.starts();
    // What the budget does not reach is left out from the end.
    std::ranges::stable_partition(
        proposals, [](const Proposal& proposal) { return proposal.parameters.empty(); });
    // A policy that settles for longer than others' full trials begins with its defaults alone.
    std::erase_if(proposals, [this](const Proposal& proposal) {
      return !proposal.parameters.empty() &&
             log_.trial(proposal, kShortest).length > log_.length();
    });
    for (const auto& [part, slack] :
         {std::pair(kShortest, 2 * kBeyondInShort), std::pair(kNinth, 1.5 * kBeyondInShort),
          std::pair(kThird, kBeyondInShort)}) {
      BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Tried> tried, log_.try_out(proposals, part));
      if (stopped() || log_.spent() > until) break;
      proposals = survivors(std::move(tried), proposals.size() / kGoesOn, slack);
    }
    return {};
  }

  // Loads of every policy, then local searches about the best of different policies.
  Result<void> improve_all() {
    std::vector<Tried> leaders;
    using enum TrialLog::Which;
    for (const TrialLog::Which reach : {kAvailable, kOutOfReach}) {
      for (Tried& trial : log_.best_by_policy(options_.limits, reach, TrialLog::kEveryPolicy)) {
        leaders.push_back(std::move(trial));
      }
    }
    BUBBLESIM_RETURN_IF_ERROR(search_loads(leaders, kLoadFactors.size() - 1));
    std::vector<Proposal> from;
    for (const double margin : kLooserForLeaders) {
      const std::size_t most = from.empty() ? kLeaders : kLeadersBeyond;
      for (const Tried& trial :
           log_.best_by_policy(tightened(options_.limits, -margin), kAvailable, most)) {
        if (std::ranges::find(from, trial.proposal) == from.end()) from.push_back(trial.proposal);
      }
    }
    for (const Proposal& proposal : from) {
      const double left = std::max(0.0, kUntilLocal * search_events_ - log_.spent());
      BUBBLESIM_RETURN_IF_ERROR(improve(proposal, log_.spent() + left / kPartOfLeft));
    }
    return {};
  }

  /// The largest loads within the limits, of all at once: up and down by ever smaller factors.
  Result<void> search_loads(std::vector<Tried>& leaders, std::size_t factors) {
    std::vector<std::size_t> at(leaders.size(), 0);  // which factor is next, of each
    for (bool improving = true; improving && !stopped();) {
      std::vector<Proposal> proposals;
      std::vector<std::size_t> owners;
      for (std::size_t i = 0; i < leaders.size(); ++i) {
        if (at[i] >= factors) continue;
        const bool keeps = violation(leaders[i].result, options_.limits) <= 0;
        const double factor = keeps ? kLoadFactors[at[i]] : 1 / kLoadFactors[at[i]];
        Proposal next = space_.with_load(leaders[i].proposal, factor);
        if (next == leaders[i].proposal) {
          at[i] = factors;
          continue;
        }
        proposals.push_back(std::move(next));
        owners.push_back(i);
      }
      improving = !proposals.empty();
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried,
                                 log_.try_out(proposals, kThird));
      for (std::size_t k = 0; k < tried.size(); ++k) {
        if (better(0)(tried[k], leaders[owners[k]])) {
          leaders[owners[k]] = tried[k];
        } else {
          ++at[owners[k]];
        }
      }
    }
    return {};
  }

  /// Climbs from here. Where a load is searched, parameters are tried at a load just beyond the
  /// limits: what brings that within them is better, and nothing else is.
  Result<void> improve(const Proposal& from, double until) {
    Tried best{from, {}};
    std::vector<std::string> only;
    std::set<std::string> seen{proposal_text(from)};
    double part = 0;
    for (std::size_t i = 0; i < kFactors.size();) {
      if (stopped() || log_.spent() >= until) break;
      const double length_part = i < kCoarse ? kNinth : kThird;
      if (part != length_part) {
        part = length_part;
        BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> again,
                                   log_.try_out({best.proposal}, part));
        best = again.front();
      }
      BUBBLESIM_ASSIGN_OR_RETURN(const Tried at, pushed(best, part));
      std::vector<SpaceStep> steps = space_.steps(at.proposal, kFactors[i], only);
      std::erase_if(steps, [&seen](const SpaceStep& step) {
        return !seen.insert(proposal_text(step.proposal)).second;
      });
      limit(steps, at.result.events, until);
      BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<Tried> next,
                                 best_step(at, steps, part, only));
      if (!next || !better(0)(*next, best)) {
        ++i;
        continue;
      }
      std::vector<Tried> climbing{*next};
      BUBBLESIM_RETURN_IF_ERROR(search_loads(climbing, kLoadFactors.size()));
      best = climbing.front();
    }
    return {};
  }

  /// With a load a little beyond what keeps the limits; as it is where no load is searched.
  Result<Tried> pushed(const Tried& best, double part) {
    const Proposal more = space_.with_load(best.proposal, kPush);
    if (more == best.proposal || violation(best.result, options_.limits) > 0) return best;
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, log_.try_out({more}, part));
    return tried.front().result.done ? tried.front() : best;
  }

  // No more than the budget has, by what the last one cost.
  void limit(std::vector<SpaceStep>& steps, double events, double until) const {
    const double most = std::max(4.0, (until - log_.spent()) / std::max(1.0, events));
    if (static_cast<double>(steps.size()) > most) steps.resize(static_cast<std::size_t>(most));
  }

  /// The best of the steps and of what is best in different dimensions together, if it is better.
  Result<std::optional<Tried>> best_step(const Tried& from, const std::vector<SpaceStep>& steps,
                                         double part, std::vector<std::string>& only) {
    std::vector<Proposal> proposals;
    for (const SpaceStep& step : steps) proposals.push_back(step.proposal);
    BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Tried> tried, log_.try_out(proposals, part));
    note_moved(from, steps, tried, only);
    const Proposal together = joined(from, steps, tried);
    const bool known = together == from.proposal || std::ranges::find(proposals, together) !=
                                                        proposals.end();
    if (!known) {
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> trial, log_.try_out({together}, part));
      tried.push_back(trial.front());
    }
    const auto best = std::ranges::min_element(tried, better(0));
    if (best == tried.end() || !better(0)(*best, from)) return std::optional<Tried>{};
    return std::optional(*best);
  }

  /// Dimensions that move something are looked at again.
  static void note_moved(const Tried& from, const std::vector<SpaceStep>& steps,
                         const std::vector<Tried>& tried, std::vector<std::string>& only) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const TrialResult& now = tried[i].result;
      const bool moved = std::abs(now.gain - from.result.gain) > kMoved * from.result.gain ||
                         std::abs(now.kept - from.result.kept) > kMoved ||
                         now.p95 != from.result.p95 || now.tokens != from.result.tokens;
      const bool known = std::ranges::find(only, steps[i].dimension) != only.end();
      if (now.done && moved && !known) only.push_back(steps[i].dimension);
    }
    if (only.empty()) only.emplace_back("-");  // no dimension has this name: nothing is left
  }

  /// All steps that are better by themselves, the best of each dimension.
  Proposal joined(const Tried& from, const std::vector<SpaceStep>& steps,
                  const std::vector<Tried>& tried) const {
    std::map<std::string, std::size_t> best;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!better(0)(tried[i], from)) continue;
      const auto [at, fresh] = best.try_emplace(steps[i].dimension, i);
      if (!fresh && better(0)(tried[i], tried[at->second])) at->second = i;
    }
    Proposal together = from.proposal;
    for (const auto& [dimension, i] : best) {
      const Proposal& to = steps[i].proposal;
      take_over(to.places, dimension, together.places);
      take_over(to.parameters, dimension, together.parameters);
    }
    return space_.is_available(together) || together.policy->oracle ? together : from.proposal;
  }

  const Space& space_;
  const SearchOptions& options_;
  TrialLog log_;
  bool scarce_ = false;
  double search_events_ = 0;
  double confirming_events_ = 0;
  double needed_events_ = 0;
  bool shortened_ = false;
};

}  // namespace

Result<Found> search(const Space& space, const TryAll& try_all, const SearchOptions& options) {
  return Searcher(space, try_all, options).run();
}

}  // namespace bubblesim::advise
