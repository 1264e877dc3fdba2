#include "policies/vcuda_tokens.hpp"

#include <algorithm>
#include <cstdlib>

namespace bubblesim::policies {
namespace {

constexpr std::int64_t kLeastDifference = 5;  // percent
constexpr std::int64_t kBegins = 10;          // below its limit over this a process has only begun

}  // namespace

void VcudaTokens::refill(std::int64_t used, bool alone) {
  if (alone && used < limit_ / kBegins) {
    tokens_ = next_share(used);
    return;
  }
  share_ = next_share(used);
  tokens_ = std::min(tokens_ + share_, most_);
}

std::int64_t VcudaTokens::next_share(std::int64_t used) const {
  const std::int64_t difference = std::max(std::abs(limit_ - used), kLeastDifference);
  std::int64_t change = step_ * difference / 10;
  if (difference > limit_ / 2) change = change * difference * 2 / (limit_ + 1);
  return used <= limit_ ? std::min(share_ + change, most_)
                        : std::max(share_ - change, std::int64_t{0});
}

}  // namespace bubblesim::policies
