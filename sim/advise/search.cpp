#include "sim/advise/search.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace bubblesim::advise {
namespace {

constexpr std::size_t kThird = 3;          // a step of halving is so many times as long
constexpr std::size_t kGoesOn = 4;         // and one of so many settings goes on to it
constexpr std::size_t kRungs = 4;          // lengths 1/27, 1/9, 1/3, 1
constexpr std::size_t kLeaders = 3;        // policies that local searches begin from
constexpr std::size_t kLeadersBeyond = 2;  // and from settings beyond the limits
constexpr std::size_t kFinalists = 3;      // policies that are simulated at full length
constexpr std::size_t kFinalistsOfScarce = 2;
constexpr std::size_t kEveryPolicy = 1000;
// How far within the limits finalists are: of training, and so many times of the latency. A short
// trial is wrong by about so much.
// Local searches begin from what is best within the limits, and from what is beyond them, a little
// or far, and gains more: one parameter may bring that back.
constexpr std::array<double, 3> kLooserForLeaders{0.002, 0.02, 0.1};
constexpr double kPartOfLeft = 3;  // of the budget of local searches, that the next may spend
constexpr std::array<double, 6> kMargins{-0.0005, 0, 0.0005, 0.0015, 0.004, 0.01};
constexpr double kLatencyMargin = 20;
constexpr std::size_t kConfirmedAtMost = 8;
// Gains so near each other are equal for a recommendation: then what training loses counts, and
// what the system must have.
constexpr double kAsMuch = 0.005;
constexpr double kSafer = 0.0002;  // of training, that makes a setting safer than another
constexpr double kPush = 1.12;             // of a load, beyond what keeps the limits
// Steps back from a limit that other seeds or the full length break.
constexpr std::array<double, 5> kLessLoad{1.08, 1.25, 1.6, 2.5, 5};
constexpr double kBeyondInShort = 0.05;    // of a limit, that a short trial may be
constexpr double kMoved = 0.001;           // a dimension that moves gain or training less is idle
constexpr std::array<double, 6> kFactors{4, 2, 1.4, 1.15, 1.06, 1.02};
constexpr std::size_t kCoarse = 2;  // of these, so many in trials a third as long
constexpr std::array<double, 4> kLoadFactors{1.6, 1.25, 1.1, 1.04};
// Full trials that a whole search costs, by the counts above.
constexpr double kFullTrials = 75;
// Where even the shortest full trials cost so many times what the budget has, defaults alone begin,
// two policies are finalists, and nothing that the system lacks is.
constexpr double kScarce = 1.5;
// Parts of the budget that are spent when this step ends.
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
      : space_(space), try_all_(try_all), options_(options), length_(options.full.length),
        warmup_(options.full.warmup) {}

  Result<Found> run() {
    BUBBLESIM_RETURN_IF_ERROR(fix_length());
    BUBBLESIM_RETURN_IF_ERROR(halve());
    BUBBLESIM_RETURN_IF_ERROR(improve_all());
    BUBBLESIM_RETURN_IF_ERROR(finish());
    fill_found();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stopped && options_.stopped(); }

  [[nodiscard]] Trial trial(const Proposal& proposal, double part) const {
    Trial trial;
    trial.proposal = proposal;
    const auto scaled = [part](Duration span) {
      return Duration{std::llround(static_cast<double>(span.count()) * part)};
    };
    const Duration measured = std::max(scaled(length_ - warmup_), options_.full.shortest);
    trial.warmup = std::min(std::max(scaled(warmup_), options_.full.shortest / 4), warmup_);
    trial.length = std::min(trial.warmup + measured, length_);
    trial.seed = options_.full.seed;
    return trial;
  }

  Result<std::vector<Tried>> try_out(const std::vector<Proposal>& proposals, double part) {
    std::vector<Trial> trials;
    for (const Proposal& proposal : proposals) trials.push_back(trial(proposal, part));
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, try_all_(trials));
    std::vector<Tried> tried;
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      tried.push_back(
          {proposals[i], results[i], space_.is_available(proposals[i]), trials[i].length});
      note(tried.back());
    }
    return tried;
  }

  void note(const Tried& tried) {
    spent_ += tried.result.events;
    ++found_.trials;
    const std::string text = proposal_text(tried.proposal);
    const auto [at, fresh] = index_.try_emplace(text, found_.all.size());
    if (fresh) {
      found_.all.push_back(tried);
    } else if (tried.result.done && tried.length >= found_.all[at->second].length) {
      found_.all[at->second] = tried;
    }
  }

  // By trials of the shortest kind; what the length is cut to keeps its share of warm-up.
  Result<void> fix_length() {
    const std::vector<Proposal> starts = space_.starts();
    std::vector<Proposal> probes;  // of a policy that lets fillers run
    for (const Proposal& start : starts) {
      if (start.policy == starts.back().policy) probes.push_back(start);
    }
    const double part = 1.0 / (kThird * kThird * kThird);
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, try_out(probes, part));
    double most = 0;
    for (const Tried& trial : tried) most = std::max(most, trial.result.events);
    const double seconds = to_seconds(trial(probes.front(), part).length);
    const double full = most / seconds * to_seconds(length_);
    const double affordable = options_.events / kFullTrials;
    if (full <= affordable) return {};
    const double cut = affordable / full;
    const Duration least = std::min(length_, 5 * options_.full.shortest);
    const auto shorter = [cut](Duration span) {
      return Duration{std::llround(static_cast<double>(span.count()) * cut)};
    };
    const Duration length = in_milliseconds(std::max(shorter(length_), least));
    warmup_ = in_milliseconds(std::min(std::max(shorter(warmup_), length / 4), warmup_));
    length_ = length;
    found_.shortened = true;
    scarce_ = most / seconds * to_seconds(length) > kScarce * affordable;
    return {};
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

  Result<void> halve() {
    std::vector<Proposal> proposals = scarce_ ? defaults_of(space_.starts()) : space_.starts();
    double part = 1;
    for (std::size_t i = 1; i < kRungs; ++i) part /= kThird;
    for (std::size_t rung = 0; rung + 1 < kRungs; ++rung, part *= kThird) {
      BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Tried> tried, try_out(proposals, part));
      if (stopped() || spent_ > kUntilHalved * options_.events) break;
      proposals = survivors(std::move(tried), proposals.size() / kGoesOn, slack_at(rung));
    }
    return {};
  }

  [[nodiscard]] static double slack_at(std::size_t rung) {
    return kBeyondInShort * static_cast<double>(kRungs - rung) / 2;
  }

  // Loads of every policy, then local searches about the best of different policies.
  Result<void> improve_all() {
    std::vector<Tried> leaders;
    for (const Which which : {Which::kAvailable, Which::kOutOfReach}) {
      for (Tried& trial : best_by_policy(options_.limits, which, kEveryPolicy)) {
        leaders.push_back(std::move(trial));
      }
    }
    BUBBLESIM_RETURN_IF_ERROR(search_loads(leaders, kLoadFactors.size() - 1));
    std::vector<Proposal> from;
    for (const double margin : kLooserForLeaders) {
      const std::size_t most = from.empty() ? kLeaders : kLeadersBeyond;
      for (const Tried& trial : best_by_policy(tightened(-margin), Which::kAvailable, most)) {
        if (std::ranges::find(from, trial.proposal) == from.end()) from.push_back(trial.proposal);
      }
    }
    for (const Proposal& proposal : from) {
      const double left = std::max(0.0, kUntilLocal * options_.events - spent_);
      BUBBLESIM_RETURN_IF_ERROR(improve(proposal, spent_ + left / kPartOfLeft));
    }
    return {};
  }

  /// The largest loads within the limits, of all at once: up and down by ever smaller factors.
  Result<void> search_loads(std::vector<Tried>& leaders, std::size_t factors) {
    std::vector<std::size_t> at(leaders.size(), 0);  // which factor is next, of each
    for (bool any = true; any && !stopped();) {
      std::vector<Proposal> proposals;
      std::vector<std::size_t> whose;
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
        whose.push_back(i);
      }
      any = !proposals.empty();
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried,
                                 try_out(proposals, 1.0 / kThird));
      for (std::size_t k = 0; k < tried.size(); ++k) {
        if (better(0)(tried[k], leaders[whose[k]])) {
          leaders[whose[k]] = tried[k];
        } else {
          ++at[whose[k]];
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
      if (stopped() || spent_ >= until) break;
      const double length_part = i < kCoarse ? 1.0 / (kThird * kThird) : 1.0 / kThird;
      if (part != length_part) {
        part = length_part;
        BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> again, try_out({best.proposal}, part));
        best = again.front();
      }
      BUBBLESIM_ASSIGN_OR_RETURN(const Tried at, pushed(best, part));
      std::vector<Step> steps = space_.steps(at.proposal, kFactors[i], only);
      std::erase_if(steps, [&seen](const Step& step) {
        return !seen.insert(proposal_text(step.to)).second;
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
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, try_out({more}, part));
    return tried.front().result.done ? tried.front() : best;
  }

  // No more than the budget has, by what the last one cost.
  void limit(std::vector<Step>& steps, double events, double until) const {
    const double most = std::max(4.0, (until - spent_) / std::max(1.0, events));
    if (static_cast<double>(steps.size()) > most) steps.resize(static_cast<std::size_t>(most));
  }

  /// The best of the steps and of what is best in different dimensions together, if it is better.
  Result<std::optional<Tried>> best_step(const Tried& from, const std::vector<Step>& steps,
                                         double part, std::vector<std::string>& only) {
    std::vector<Proposal> proposals;
    for (const Step& step : steps) proposals.push_back(step.to);
    BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Tried> tried, try_out(proposals, part));
    note_moved(from, steps, tried, only);
    const Proposal together = joined(from, steps, tried);
    const bool known = together == from.proposal || std::ranges::find(proposals, together) !=
                                                        proposals.end();
    if (!known) {
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> trial, try_out({together}, part));
      tried.push_back(trial.front());
    }
    const auto best = std::ranges::min_element(tried, better(0));
    if (best == tried.end() || !better(0)(*best, from)) return std::optional<Tried>{};
    return std::optional(*best);
  }

  /// Dimensions that move something are looked at again.
  static void note_moved(const Tried& from, const std::vector<Step>& steps,
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
  Proposal joined(const Tried& from, const std::vector<Step>& steps,
                  const std::vector<Tried>& tried) const {
    std::map<std::string, std::size_t> best;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!better(0)(tried[i], from)) continue;
      const auto [at, fresh] = best.try_emplace(steps[i].dimension, i);
      if (!fresh && better(0)(tried[i], tried[at->second])) at->second = i;
    }
    Proposal together = from.proposal;
    for (const auto& [dimension, i] : best) {
      const Proposal& to = steps[i].to;
      take_over(to.places, dimension, together.places);
      take_over(to.parameters, dimension, together.parameters);
    }
    return space_.is_available(together) || together.policy->oracle ? together : from.proposal;
  }

  /// Full length: those that lead, at the limits and at some distance from them; the bounds.
  Result<void> finish() {
    std::vector<Proposal> finalists;
    std::set<std::string> seen;
    const auto add = [&](const Tried& trial) {
      if (seen.insert(proposal_text(trial.proposal)).second) finalists.push_back(trial.proposal);
    };
    const std::size_t policies = scarce_ ? kFinalistsOfScarce : kFinalists;
    for (const double margin : kMargins) {
      if (scarce_ && margin < 0) continue;
      for (const Tried& trial : best_by_policy(tightened(margin), Which::kAvailable, policies)) {
        add(trial);
      }
    }
    for (const Which which : {Which::kOutOfReach, Which::kAvailable}) {
      for (const Tried& trial : best_by_policy(options_.limits, which, kEveryPolicy)) {
        const bool nothing = trial.proposal.policy->name == "exclusive";
        const bool out = which == Which::kOutOfReach && (!scarce_ || trial.proposal.policy->oracle);
        if (out || nothing) add(trial);
      }
    }
    BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Tried> full, try_out(finalists, 1));
    BUBBLESIM_RETURN_IF_ERROR(step_back(full));
    sort_out(full);
    std::erase_if(full,
                  [this](const Tried& trial) { return !space_.is_available(trial.proposal); });
    return confirm(std::move(full));
  }

  [[nodiscard]] Limits tightened(double margin) const {
    Limits limits = with_latencies_scaled(options_.limits, 1 - kLatencyMargin * margin);
    limits.keep = std::min(1.0, limits.keep + margin);
    return limits;
  }

  enum class Which : std::uint8_t { kAvailable, kOutOfReach };

  /// The best setting of each policy, of those that were tried longest; the best policies first.
  [[nodiscard]] std::vector<Tried> best_by_policy(const Limits& limits, Which which,
                                                  std::size_t most) const {
    const Duration long_enough = trial({}, 1.0 / kThird).length;
    std::vector<std::pair<Tried, bool>> pool;  // whether tried for long
    for (const Tried& trial : found_.all) {
      const bool wanted = trial.available == (which == Which::kAvailable);
      if (wanted && trial.result.done) pool.emplace_back(trial, trial.length >= long_enough);
    }
    std::ranges::stable_sort(pool, [&limits](const auto& left, const auto& right) {
      if (left.second != right.second) return left.second;
      return is_better(left.first.result, right.first.result, limits);
    });
    std::vector<Tried> out;
    std::set<std::string> policies;
    for (const auto& [trial, longest] : pool) {
      if (out.size() < most && policies.insert(trial.proposal.policy->name).second) {
        out.push_back(trial);
      }
    }
    return out;
  }

  /// Policies of which nothing keeps the limits at full length, with less and less load.
  Result<void> step_back(std::vector<Tried>& full) {
    for (const double factor : kLessLoad) {
      std::vector<Proposal> less;
      for (const Tried& trial : best_of_each(full)) {
        const bool known_enough = !trial.available && factor != kLessLoad.front();
        if (violation(trial.result, options_.limits) <= 0 || known_enough) continue;
        Proposal with_less = space_.with_load(trial.proposal, 1 / factor);
        if (with_less != trial.proposal) less.push_back(std::move(with_less));
      }
      if (less.empty() || stopped()) break;
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, try_out(less, 1));
      full.insert(full.end(), tried.begin(), tried.end());
    }
    return {};
  }

  /// The best setting of each policy among these.
  [[nodiscard]] std::vector<Tried> best_of_each(std::vector<Tried> tried) const {
    std::ranges::stable_sort(tried, better(0));
    std::set<std::string> policies;
    std::erase_if(tried, [&policies](const Tried& trial) {
      return !trial.result.done || !policies.insert(trial.proposal.policy->name).second;
    });
    return tried;
  }

  void sort_out(std::vector<Tried>& full) {
    std::ranges::stable_sort(full, better(0));
    std::set<std::string> policies;
    for (const Tried& trial : full) {
      if (!trial.result.done || space_.is_available(trial.proposal)) continue;
      if (!policies.insert(trial.proposal.policy->name).second) continue;
      (trial.proposal.policy->oracle ? found_.bounds : found_.out_of_reach).push_back(trial);
    }
  }

  /// The best that holds under other seeds. What does not makes way for less load, and for settings
  /// that are further from the limits.
  Result<void> confirm(std::vector<Tried> full) {
    const std::vector<Tried> all = full;
    std::optional<Tried> fallback;
    Confirmation of_fallback;
    std::map<std::string, std::size_t> failures;  // by policy
    for (std::size_t i = 0; i < kConfirmedAtMost; ++i) {
      const std::optional<Tried> next = choice_of(full);
      if (!next) break;
      BUBBLESIM_ASSIGN_OR_RETURN(Confirmation confirmed, again(next->proposal));
      if (confirmed.broke == 0) return recommend(all, *next, std::move(confirmed));
      if (!fallback || confirmed.broke < of_fallback.broke) {
        fallback = next;
        of_fallback = confirmed;
      }
      if (stopped()) break;
      std::erase_if(full, [&next](const Tried& trial) { return !is_safer(trial, *next); });
      const std::size_t failed = failures[next->proposal.policy->name]++;
      const Proposal less =
          space_.with_load(next->proposal, 1 / kLessLoad[std::min(failed, kLessLoad.size() - 1)]);
      if (less == next->proposal) continue;
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, try_out({less}, 1));
      full.push_back(tried.front());
    }
    if (fallback) return recommend(all, *fallback, std::move(of_fallback));
    if (!full.empty()) found_.least = *std::ranges::min_element(full, better(0));
    return {};
  }

  /// Whether the setting may hold where `broken` did not: another policy, or further within limits.
  static bool is_safer(const Tried& trial, const Tried& broken) {
    if (trial.proposal.policy != broken.proposal.policy) return true;
    const Duration none{};
    return trial.result.kept > broken.result.kept + kSafer ||
           trial.result.p95.value_or(none) < broken.result.p95.value_or(none);
  }

  /// Of what keeps the limits and gains as much as the best, what leaves most, in GPUs, after what
  /// training loses; of what leaves as much, what demands least and changes least.
  [[nodiscard]] std::optional<Tried> choice_of(std::vector<Tried> full) const {
    std::erase_if(full, [this](const Tried& trial) {
      return !trial.result.done || violation(trial.result, options_.limits) > 0;
    });
    if (full.empty()) return std::nullopt;
    const double most =
        std::ranges::max_element(full, {}, [](const Tried& trial) { return trial.result.gain; })
            ->result.gain;
    std::erase_if(full, [most](const Tried& trial) {
      return trial.result.gain < (1 - kAsMuch) * most;
    });
    const double step = std::max(kAsMuch * most, 1e-9);
    const auto rank = [this, step](const Tried& trial) {
      const double left = trial.result.gain + options_.gpus * trial.result.kept;
      return std::tuple(-std::floor(left / step), demanded(trial.proposal).size(),
                        trial.proposal.parameters.size(), -left);
    };
    return *std::ranges::min_element(full, {}, rank);
  }

  Result<void> recommend(const std::vector<Tried>& full, const Tried& best,
                         Confirmation confirmed) {
    found_.best = best;
    found_.confirmed = std::move(confirmed);
    for (const Tried& trial : full) {
      const bool gains = trial.result.done && trial.result.gain > 0;
      if (trial.proposal.policy == best.proposal.policy || !gains) continue;
      found_.runner_up = trial;
      break;
    }
    return {};
  }

  Result<Confirmation> again(const Proposal& proposal) {
    std::vector<Trial> trials;
    for (std::size_t i = 1; i <= kSeedsConfirmed; ++i) {
      trials.push_back(trial(proposal, 1));
      trials.back().seed += i;
    }
    for (const double factor : {1 + kDurationsVaried, 1 - kDurationsVaried}) {
      trials.push_back(trial(proposal, 1));
      trials.back().slowdown = factor;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, try_all_(trials));
    Confirmation confirmed;
    for (std::size_t i = 0; i < results.size(); ++i) {
      spent_ += results[i].events;
      ++found_.trials;
      if (!results[i].done) continue;
      if (i < kSeedsConfirmed) {
        confirmed.seeds.push_back(results[i]);
        if (violation(results[i], options_.limits) > 0) ++confirmed.broke;
      } else {
        (i == kSeedsConfirmed ? confirmed.slower : confirmed.faster).push_back(results[i]);
      }
    }
    return confirmed;
  }

  void fill_found() {
    found_.length = length_;
    found_.warmup = warmup_;
    found_.events = spent_;
  }

  const Space& space_;
  const TryAll& try_all_;
  const SearchOptions& options_;
  Duration length_;
  Duration warmup_;
  double spent_ = 0;
  bool scarce_ = false;
  Found found_;
  std::map<std::string, std::size_t> index_;  // into found_.all
};

}  // namespace

double break_rate(const Confirmation& confirmed) {
  return static_cast<double>(confirmed.broke + 1) /
         static_cast<double>(confirmed.seeds.size() + 2);
}

Result<Found> search(const Space& space, const TryAll& try_all, const SearchOptions& options) {
  return Searcher(space, try_all, options).run();
}

}  // namespace bubblesim::advise
