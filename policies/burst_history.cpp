#include "policies/burst_history.hpp"

#include <algorithm>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

/// A recent burst of fewer launches is no reference (RCKM.c, update_average_period).
constexpr std::int64_t kLeastRecentReference = 2;

}  // namespace

void BurstHistory::add(std::int64_t length) {
  const auto slot = static_cast<std::size_t>(bursts_ % rule_.history);
  if (slot < recent_.size())
    recent_[slot] = length;
  else
    recent_.push_back(length);
  ++bursts_;
  if (length > rule_.shortest_burst && (shortest_ == 0 || length < shortest_)) shortest_ = length;
}

std::int64_t BurstHistory::shortest_recent() const {
  return std::max(kLeastRecentReference, *std::ranges::min_element(recent_));
}

BurstHistory::Reaction BurstHistory::react(double inflation) const {
  if (inflation >= rule_.cut && inflation < rule_.ignore) return Reaction::kCut;
  if (inflation < rule_.recover && bursts_ % rule_.recover_bursts == 0) return Reaction::kRecover;
  return Reaction::kKeep;
}

BurstRule burst_rule(const policy::ParameterSet& given) {
  return {.shortest_burst = given.integer("shortest_burst"),
          .history = given.integer("burst_history"),
          .recover = given.number("inflation_recover"),
          .cut = given.number("inflation_cut"),
          .ignore = given.number("inflation_ignore"),
          .recover_bursts = given.integer("recover_bursts")};
}

std::vector<policy::ParameterSpec> burst_parameters(const std::string& periods,
                                                    const std::string& code) {
  using namespace policy;
  const BurstRule rule;
  return {
      declare_integer("shortest_burst", rule.shortest_burst, 0, 100000,
                      {periods, "A burst must be longer to be the reference of all time.", code}),
      declare_integer("burst_history", rule.history, 1, 10000,
                      {"bursts",
                       "How many are the last bursts, whose shortest is the reference of language "
                       "models.",
                       code + ": PERIOD_HISTORY_SIZE"}),
      declare_number(
          "inflation_recover", rule.recover, 0, 1000,
          {"", "A burst below this inflation lets the quota recover.", code + ": OVERFLOW_RATE_A"}),
      declare_number(
          "inflation_cut", rule.cut, 0, 1000,
          {"", "From this inflation on the quota is divided by it.", code + ": OVERFLOW_RATE_D"}),
      declare_number("inflation_ignore", rule.ignore, 0, 1000,
                     {"", "From this inflation on a burst is of another kind and ignored.",
                      code + ": OVERFLOW_RATE_U"}),
      declare_number("recover_factor", 1.3, 1, 1000,
                     {"", "A recovery's factor.", code + ": INCREASE_FACTOR"}),
      declare_integer("recover_bursts", rule.recover_bursts, 1, 100000,
                      {"bursts", "One recovery in so many bursts.", code}),
  };
}

}  // namespace bubblesim::policies
