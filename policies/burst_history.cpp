#include "policies/burst_history.hpp"

#include <algorithm>

namespace bubblesim::policies {
namespace {

/// A recent burst shorter than this is no reference (RCKM.c, update_average_period).
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

}  // namespace bubblesim::policies
