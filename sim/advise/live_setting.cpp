#include "sim/advise/live_setting.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace bubblesim::advise {
namespace {

constexpr std::size_t kLiveTried = 8;      // settings at full length
constexpr std::size_t kLiveOfPolicy = 2;   // of these, so many of a policy
constexpr std::size_t kLiveConfirmed = 3;  // and so many under other seeds
constexpr int kLiveTriedFor = 10;          // of those that were tried for a ninth of it

void sort_by_limits(std::vector<Tried>& tried, const Limits& limits) {
  std::ranges::stable_sort(tried, [&limits](const Tried& left, const Tried& right) {
    return is_better(left.result, right.result, limits);
  });
}

std::vector<Tried> live_candidates(const Advice& advice,
                                   const std::function<bool(const Proposal&)>& takes) {
  const Limits& limits = advice.question.limits;
  std::vector<Tried> others;
  for (const Tried& other : advice.found.all) {
    const bool good = other.available && other.result.done && other.result.gain > 0 &&
                      other.length >= advice.found.length / kLiveTriedFor &&
                      violation(other.result, limits) <= 0;
    if (good && takes(other.proposal)) others.push_back(other);
  }
  sort_by_limits(others, limits);
  std::map<std::string, std::size_t> counts;
  std::erase_if(others, [&counts](const Tried& other) {
    return ++counts[other.proposal.policy->name] > kLiveOfPolicy;
  });
  others.resize(std::min(others.size(), kLiveTried));
  return others;
}

}  // namespace

Result<std::optional<Tried>> best_live_setting(const Advice& advice,
                                               const std::function<bool(const Proposal&)>& takes,
                                               const Trial& full, Trials& trials) {
  const Limits& limits = advice.question.limits;
  std::vector<Tried> others = live_candidates(advice, takes);
  std::vector<Trial> again(others.size(), full);
  for (std::size_t i = 0; i < others.size(); ++i) again[i].proposal = others[i].proposal;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> results, trials.run(again));
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].result = results[i];
    others[i].length = full.length;
  }
  sort_by_limits(others, limits);
  others.resize(std::min(others.size(), kLiveConfirmed));
  for (const Tried& other : others) {
    if (violation(other.result, limits) > 0) break;
    std::vector<Trial> seeds(kSeedsConfirmed, full);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      seeds[i].proposal = other.proposal;
      seeds[i].seed += i + 1;
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<TrialResult> held, trials.run(seeds));
    const bool holds = std::ranges::all_of(held, [&limits](const TrialResult& result) {
      return violation(result, limits) <= 0;
    });
    if (holds) return std::optional(other);
  }
  return std::optional<Tried>{};
}

}  // namespace bubblesim::advise
