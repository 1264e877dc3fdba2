#include "sim/advise/trial_log.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/advise/advice.hpp"

namespace bubblesim::advise {
namespace {

constexpr std::size_t kFinalists = 3;  // policies, at each distance from the limits
constexpr std::size_t kFinalistsOfScarce = 2;
// How far within the limits finalists are.
constexpr std::array<double, 6> kMargins{-0.0005, 0, 0.0005, 0.0015, 0.004, 0.01};
// Finalists whatever their policy, which were tried for a ninth of the searched length at least.
constexpr int kTriedFor = 10;
constexpr std::size_t kLeading = 4;
constexpr std::size_t kLive = 8;      // that the user's tool takes
constexpr std::size_t kOfPolicy = 2;  // of both, so many of a policy
// Steps back from a limit that other seeds or the full length break.
constexpr std::array<double, 5> kLessLoad{1.08, 1.25, 1.6, 2.5, 5};
constexpr std::size_t kConfirmedAtMost = 8;
constexpr std::size_t kLiveConfirmed = 3;
constexpr std::size_t kPromotedAtMost = 16;  // settings of which the full length is awaited
constexpr std::size_t kNearest = 4;          // that are tried where only doing nothing keeps limits
constexpr std::size_t kRunnersUp = 2;
constexpr std::size_t kLooserTried = 2;
constexpr std::size_t kRounds = 3;
constexpr std::size_t kBreaksAtMost = 1;  // of a setting that is told although it did not hold
// Gains so near each other are equal for a recommendation: then what training loses counts, and
// what the system must have.
constexpr double kAsMuch = 0.005;
constexpr double kSafer = 0.0002;  // of training, that makes a setting safer than another

using Accepts = std::function<bool(const Tried&)>;

bool accepts_all(const Tried&) { return true; }

bool is_of_policy(const Tried& tried, const Tried& other) {
  return tried.proposal.policy == other.proposal.policy;
}

/// Whether `tried` may hold where `broken` did not: another policy, or further within the limits.
bool is_safer(const Tried& tried, const Tried& broken) {
  if (!is_of_policy(tried, broken)) return true;
  const Duration none{};
  return tried.result.kept > broken.result.kept + kSafer ||
         tried.result.p95.value_or(none) < broken.result.p95.value_or(none);
}

/// Keeps the first `most`, of a policy `of_policy` at most.
void keep_first(std::vector<Tried>& tried, std::size_t most, std::size_t of_policy) {
  std::map<std::string, std::size_t> counts;
  std::erase_if(tried, [&counts, of_policy](const Tried& trial) {
    return ++counts[trial.proposal.policy->name] > of_policy;
  });
  tried.resize(std::min(tried.size(), most));
}

std::vector<Proposal> proposals_of(const std::vector<Tried>& tried) {
  std::vector<Proposal> proposals;
  for (const Tried& trial : tried) proposals.push_back(trial.proposal);
  return proposals;
}

class Finals {
 public:
  Finals(const Space& space, TrialLog& log, const SearchOptions& options, Scarce scarce)
      : space_(space), log_(log), options_(options), limits_(options.limits), scarce_(scarce) {}

  Result<Found> run() {
    BUBBLESIM_ASSIGN_OR_RETURN(pool_, log_.try_out(finalists(), 1));
    BUBBLESIM_RETURN_IF_ERROR(step_back());
    sort_out();
    for (std::size_t round = 0; round < kRounds && !ended(); ++round) {
      BUBBLESIM_RETURN_IF_ERROR(decide());
      BUBBLESIM_RETURN_IF_ERROR(look_around());
      if (!is_beaten()) break;
    }
    if (ended() && !found_.best) keep_best_so_far();
    if (!ended()) BUBBLESIM_RETURN_IF_ERROR(complete());
    fill_found();
    return std::move(found_);
  }

 private:
  /// Stopped, or no further trial is allowed.
  [[nodiscard]] bool ended() const {
    return log_.is_exhausted() || is_stopped(options_);
  }
  [[nodiscard]] double best_gain() const { return found_.best ? found_.best->result.gain : 0; }
  [[nodiscard]] bool keeps(const Tried& tried) const {
    return tried.result.done && violation(tried.result, limits_) <= 0;
  }

  [[nodiscard]] auto better() const {
    return [this](const Tried& left, const Tried& right) {
      return is_better(left.result, right.result, limits_);
    };
  }

  /// What leads: at the limits and at some distance from them, and whatever its policy; the bounds.
  [[nodiscard]] std::vector<Proposal> finalists() const {
    std::vector<Proposal> out;
    std::set<std::string> seen;
    const auto add = [&](const Tried& tried) {
      if (seen.insert(proposal_text(tried.proposal)).second) out.push_back(tried.proposal);
    };
    const bool scarce = scarce_ == Scarce::kYes;
    for (const double margin : kMargins) {
      if (scarce && margin < 0) continue;
      for (const Tried& tried : log_.best_by_policy(tightened(limits_, margin),
                                                    TrialLog::Which::kAvailable,
                                                    scarce ? kFinalistsOfScarce : kFinalists)) {
        add(tried);
      }
    }
    for (const Tried& tried : leading(accepts_all, kLeading)) add(tried);
    for (const TrialLog::Which reach :
         {TrialLog::Which::kOutOfReach, TrialLog::Which::kAvailable}) {
      for (const Tried& tried : log_.best_by_policy(limits_, reach, TrialLog::kEveryPolicy)) {
        const bool nothing = tried.proposal.policy->name == "exclusive";
        const bool out_of_reach = reach == TrialLog::Which::kOutOfReach &&
                                  (!scarce || tried.proposal.policy->oracle);
        if (out_of_reach || nothing) add(tried);
      }
    }
    return out;
  }

  /// What keeps the limits and gains something, of all that was tried for long enough.
  [[nodiscard]] std::vector<Tried> leading(const Accepts& accepts, std::size_t most) const {
    std::vector<Tried> tried;
    for (const Tried& trial : log_.all()) {
      const bool good = trial.available && keeps(trial) && trial.result.gain > 0 &&
                        trial.measured() >= log_.measured() / kTriedFor;
      if (good && accepts(trial)) tried.push_back(trial);
    }
    std::ranges::stable_sort(tried, better());
    keep_first(tried, most, kOfPolicy);
    return tried;
  }

  /// Policies of which nothing keeps the limits at this length, with less and less load.
  Result<void> step_back() {
    for (const double factor : kLessLoad) {
      std::vector<Proposal> less;
      for (const Tried& tried : best_of_each(pool_)) {
        const bool known_enough = !tried.available && factor != kLessLoad.front();
        if (keeps(tried) || known_enough) continue;
        Proposal with_less = space_.with_load(tried.proposal, 1 / factor);
        if (with_less != tried.proposal) less.push_back(std::move(with_less));
      }
      if (less.empty() || ended()) break;
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, log_.try_out(less, 1));
      pool_.insert(pool_.end(), tried.begin(), tried.end());
    }
    return {};
  }

  /// The best setting of each policy among these.
  [[nodiscard]] std::vector<Tried> best_of_each(std::vector<Tried> tried) const {
    std::ranges::stable_sort(tried, better());
    std::erase_if(tried, [](const Tried& trial) { return !trial.result.done; });
    keep_first(tried, tried.size(), 1);
    return tried;
  }

  /// Leaves in the pool what may be recommended.
  void sort_out() {
    std::vector<Tried> others = pool_;
    std::erase_if(others, [](const Tried& tried) { return tried.available; });
    for (const Tried& tried : best_of_each(others)) {
      (tried.proposal.policy->oracle ? found_.bounds : found_.out_of_reach).push_back(tried);
    }
    std::erase_if(pool_, [](const Tried& tried) { return !tried.available; });
  }

  /// The best that holds. Where only doing nothing does, the settings nearest to the limits are
  /// tried at full length before that is said.
  Result<void> decide() {
    found_.best.reset();
    BUBBLESIM_ASSIGN_OR_RETURN(std::optional<Failed> held,
                               first_that_holds(accepts_all, kConfirmedAtMost));
    if (!held || held->setting.result.gain <= 0) {
      BUBBLESIM_RETURN_IF_ERROR(try_nearest());
      BUBBLESIM_ASSIGN_OR_RETURN(held, first_that_holds(accepts_all, kConfirmedAtMost));
    }
    if (!held) held = least_broken();
    if (!held) return {};
    found_.best = held->setting;
    found_.confirmed = held->confirmed;
    return {};
  }

  /// What breaks a limit least often; doing nothing, where it exists, before what breaks it often.
  [[nodiscard]] std::optional<Failed> least_broken() const {
    std::optional<Failed> least;
    for (const Failed& failed : found_.failed) {
      if (!least || failed.confirmed.broke < least->confirmed.broke) least = failed;
    }
    if (least && least->confirmed.broke <= kBreaksAtMost) return least;
    for (const Tried& tried : pool_) {
      if (keeps(tried) && tried.result.gain <= 0) return Failed{tried, {}};
    }
    return least;
  }

  Result<std::optional<Failed>> first_that_holds(const Accepts& accepts, std::size_t attempts) {
    for (std::size_t i = 0; i < attempts; ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<Tried> next, settled(accepts));
      if (!next || ended()) break;
      BUBBLESIM_ASSIGN_OR_RETURN(const Confirmation confirmed, confirmation_of(*next));
      if (confirmed.broke == 0) return std::optional(Failed{*next, confirmed});
      found_.failed.push_back({*next, confirmed});
      std::erase_if(pool_, [&next](const Tried& tried) { return !is_safer(tried, *next); });
      BUBBLESIM_RETURN_IF_ERROR(add_less_load(*next));
    }
    return std::optional<Failed>{};
  }

  Result<Confirmation> confirmation_of(const Tried& tried) {
    const auto [known, fresh] = confirmations_.try_emplace(proposal_text(tried.proposal));
    if (!fresh) return known->second;
    if (tried.result.gain <= 0) {
      known->second.random = false;  // no filler runs
      return known->second;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(known->second, confirm(tried, limits_, log_));
    return known->second;
  }

  /// The best of the pool that is accepted, when it is one of full length.
  Result<std::optional<Tried>> settled(const Accepts& accepts) {
    while (!ended()) {
      const std::optional<Tried> next = choice_of(pool_, accepts);
      if (!next || log_.is_full(*next)) return next;
      if (promoted_ >= kPromotedAtMost) {
        std::erase_if(pool_, [this](const Tried& tried) { return !log_.is_full(tried); });
        continue;
      }
      BUBBLESIM_RETURN_IF_ERROR(promote(*next));
    }
    return std::optional<Tried>{};
  }

  /// Simulates it at full length; the first time, with the best of the other policies beside it.
  Result<void> promote(const Tried& next) {
    std::vector<Tried> batch{next};
    if (promoted_ == 0) {
      const auto other = choice_of(pool_, [&](const Tried& tried) {
        return !is_of_policy(tried, next) && !log_.is_full(tried) && tried.result.gain > 0;
      });
      if (other) batch.push_back(*other);
    }
    promoted_ += batch.size();
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> full, log_.try_full(proposals_of(batch)));
    for (std::size_t i = 0; i < full.size(); ++i) {
      put(full[i]);
      if (keeps(full[i]) || !full[i].result.done) continue;
      drop_alike(batch[i], full[i]);
      BUBBLESIM_RETURN_IF_ERROR(add_less_load(full[i]));
    }
    return {};
  }

  /// In the pool, in place of a shorter trial of the same setting.
  void put(const Tried& full) {
    if (!full.result.done && ended()) return;
    std::erase_if(pool_, [&full](const Tried& tried) { return tried.proposal == full.proposal; });
    if (full.available && full.result.done) pool_.push_back(full);
  }

  /// Drops settings of the policy that a short trial shows hardly further within the limit that
  /// `full` breaks: by less than half of what is missing.
  void drop_alike(const Tried& brief, const Tried& full) {
    const double missing = std::max(0.0, limits_.keep - full.result.kept);
    std::erase_if(pool_, [&](const Tried& tried) {
      if (log_.is_full(tried) || !is_of_policy(tried, full)) return false;
      if (missing > 0) return tried.result.kept < brief.result.kept + missing / 2;
      return !is_safer(tried, brief);
    });
  }

  Result<void> add_less_load(const Tried& broken) {
    const std::size_t failed = failures_[broken.proposal.policy->name]++;
    if (failed >= kLessLoad.size()) return {};
    const Proposal less = space_.with_load(broken.proposal, 1 / kLessLoad[failed]);
    if (less == broken.proposal) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried, log_.try_full({less}));
    put(tried.front());
    return {};
  }

  /// Among settings that keep the limits and gain as much as the best: the one that leaves most, in
  /// GPUs, after what training loses; among equals, the one that demands least and changes least.
  [[nodiscard]] std::optional<Tried> choice_of(std::vector<Tried> from,
                                               const Accepts& accepts) const {
    std::erase_if(from, [&](const Tried& tried) { return !keeps(tried) || !accepts(tried); });
    if (from.empty()) return std::nullopt;
    const auto gain = [](const Tried& tried) { return tried.result.gain; };
    const double most = std::ranges::max_element(from, {}, gain)->result.gain;
    std::erase_if(from,
                  [&](const Tried& tried) { return tried.result.gain < (1 - kAsMuch) * most; });
    const double step = std::max(kAsMuch * most, 1e-9);
    const auto rank = [this, step](const Tried& tried) {
      const double left = tried.result.gain + options_.gpus * tried.result.kept;
      return std::tuple(-std::floor(left / step), demanded(tried.proposal).size(),
                        tried.proposal.parameters.size(), -left);
    };
    return *std::ranges::min_element(from, {}, rank);
  }

  [[nodiscard]] bool has_failed(const Tried& tried) const {
    return std::ranges::any_of(found_.failed, [&tried](const Failed& failed) {
      return failed.setting.proposal == tried.proposal;
    });
  }

  /// Full trials of what gains something and is within the limits, or least beyond them.
  Result<void> try_nearest() {
    std::vector<Tried> near;
    for (const Tried& tried : log_.all()) {
      if (tried.available && tried.result.done && tried.result.gain > 0 && !has_failed(tried)) {
        near.push_back(tried);
      }
    }
    std::ranges::stable_sort(near, better());
    keep_first(near, kNearest, kOfPolicy);
    std::erase_if(near, [this](const Tried& tried) { return log_.is_full(tried); });
    if (near.empty()) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> full, log_.try_full(proposals_of(near)));
    for (const Tried& tried : full) put(tried);
    return {};
  }

  Result<void> look_around() {
    BUBBLESIM_RETURN_IF_ERROR(find_runner_up());
    BUBBLESIM_RETURN_IF_ERROR(find_live());
    return find_looser();
  }

  /// The best setting of another policy, whether it holds or not.
  Result<void> find_runner_up() {
    found_.runner_up.reset();
    for (std::size_t i = 0; found_.best && i <= kRunnersUp && !ended(); ++i) {
      std::vector<Tried> others = pool_;
      for (const Failed& failed : found_.failed) others.push_back(failed.setting);
      std::erase_if(others, [&](const Tried& tried) {
        return is_of_policy(tried, *found_.best) || tried.result.gain <= 0 ||
               (i == kRunnersUp && !log_.is_full(tried));
      });
      std::ranges::stable_sort(others, better());
      if (others.empty()) break;
      if (log_.is_full(others.front())) {
        found_.runner_up = others.front();
        break;
      }
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> full,
                                 log_.try_full({others.front().proposal}));
      put(full.front());
    }
    return {};
  }

  /// Where the user's tool refuses the best: the best that it takes and that holds.
  Result<void> find_live() {
    found_.live.reset();
    const bool refused =
        options_.takes && best_gain() > 0 && !options_.takes(found_.best->proposal);
    if (!refused || ended()) return {};
    const Accepts takes = [this](const Tried& tried) { return options_.takes(tried.proposal); };
    if (!live_searched_) {
      live_searched_ = true;
      std::vector<Tried> fresh = leading(takes, kLive);
      std::erase_if(fresh, [this](const Tried& tried) {
        return tried.measured() >= log_.measured() || has_failed(tried);
      });
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> tried,
                                 log_.try_out(proposals_of(fresh), 1));
      for (const Tried& trial : tried) put(trial);
    }
    const Accepts gains = [&takes](const Tried& tried) {
      return tried.result.gain > 0 && takes(tried);
    };
    BUBBLESIM_ASSIGN_OR_RETURN(const std::optional<Failed> held,
                               first_that_holds(gains, kLiveConfirmed));
    if (held) found_.live = held->setting;
    return {};
  }

  Result<void> find_looser() {
    found_.looser.clear();
    for (const auto& [text, looser] : looser_limits(limits_)) {
      for (std::size_t i = 0; i < kLooserTried && !ended(); ++i) {
        const std::optional<Tried> most = best_beyond(looser);
        if (!most) break;
        if (log_.is_full(*most)) {
          found_.looser.push_back({text, *most});
          break;
        }
        BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> full,
                                   log_.try_full({most->proposal}));
        if (keeps(full.front()) && !has_failed(full.front())) put(full.front());
      }
      const std::optional<Tried> last = best_beyond(looser);
      const bool told = !found_.looser.empty() && found_.looser.back().limit == text;
      if (!told && last && log_.is_full(*last)) found_.looser.push_back({text, *last});
    }
    return {};
  }

  /// What breaks a limit, keeps the looser ones and gains more than the best by 5 %.
  [[nodiscard]] std::optional<Tried> best_beyond(const Limits& looser) const {
    std::optional<Tried> most;
    for (const Tried& tried : log_.all()) {
      const bool wanted = tried.available && tried.result.done && !keeps(tried) &&
                          tried.measured() >= log_.measured() / kTriedFor &&
                          violation(tried.result, looser) <= 0 &&
                          tried.result.gain > best_gain() * kWorthTelling;
      if (wanted && (!most || is_better(tried.result, most->result, looser))) most = tried;
    }
    return most;
  }

  /// Whether something that was simulated at full length later is within the limits and better.
  [[nodiscard]] bool is_beaten() const {
    const auto first =
        choice_of(pool_, [this](const Tried& tried) { return log_.is_full(tried); });
    if (!first || !found_.best) return first.has_value() && !ended();
    return first->proposal != found_.best->proposal;
  }

  /// Ended too early: the best of the longest trials that there are.
  void keep_best_so_far() {
    const auto best_of = [this](Duration least) {
      return choice_of(log_.all(), [this, least](const Tried& tried) {
        return tried.available && tried.measured() >= least && !has_failed(tried);
      });
    };
    for (const int part : {1, kTriedFor, 1000}) {
      found_.best = best_of(log_.measured() / part);
      if (found_.best && found_.best->result.gain > 0) break;
    }
  }

  /// What is told besides: durations that are off, the least violation, the policies out of reach.
  Result<void> complete() {
    if (best_gain() > 0) {
      BUBBLESIM_RETURN_IF_ERROR(
          vary_durations(found_.best->proposal, log_, found_.confirmed));
    }
    BUBBLESIM_RETURN_IF_ERROR(promote_told(found_.bounds, 0));
    return promote_told(found_.out_of_reach, kWorthTelling);
  }

  /// Looks among full trials if there are any, else (a search that was stopped) among all.
  void find_least() {
    for (const bool full : {true, false}) {
      for (const Tried& tried : log_.all()) {
        const bool beyond = tried.available && tried.result.done && tried.result.gain > 0 &&
                            log_.is_full(tried) == full && !keeps(tried);
        if (beyond && (!found_.least || better()(tried, *found_.least))) found_.least = tried;
      }
      if (found_.least) return;
    }
  }

  /// Those within the limits that gain so many times what the best does, at full length.
  Result<void> promote_told(std::vector<Tried>& list, double times) {
    for (Tried& tried : list) {
      const bool told = keeps(tried) && tried.result.gain > best_gain() * times;
      if (!told || log_.is_full(tried) || ended()) continue;
      BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<Tried> full,
                                 log_.try_full({tried.proposal}));
      if (full.front().result.done) tried = full.front();
    }
    return {};
  }

  void fill_found() {
    if (best_gain() <= 0) find_least();
    found_.all = log_.all();
    found_.length = log_.full().length;
    found_.warmup = log_.full().warmup;
    found_.searched = log_.length();
    found_.searched_warmup = log_.warmup();
    found_.unsettled = log_.unsettled();
    found_.exhausted = log_.is_exhausted();
    found_.trials = log_.trials();
    found_.events = log_.spent();
    found_.confirmation_events = log_.spent_on_longer();
  }

  const Space& space_;
  TrialLog& log_;
  const SearchOptions& options_;
  const Limits& limits_;
  const Scarce scarce_;
  Found found_;
  std::vector<Tried> pool_;  // what may be recommended
  std::map<std::string, Confirmation> confirmations_;
  std::map<std::string, std::size_t> failures_;  // by policy
  std::size_t promoted_ = 0;
  bool live_searched_ = false;
};

}  // namespace

Result<Found> finals(const Space& space, TrialLog& log, const SearchOptions& options,
                     Scarce scarce) {
  return Finals(space, log, options, scarce).run();
}

}  // namespace bubblesim::advise
