#include "sim/run/repeated_policies.hpp"

#include <algorithm>

#include "sim/base/nearest.hpp"

namespace bubblesim::run {

std::optional<std::size_t> same_before(const std::vector<PolicyChoice>& choices, std::size_t at) {
  const auto first = std::ranges::find(choices, choices[at]) - choices.begin();
  const auto index = static_cast<std::size_t>(first);
  return index < at ? std::optional(index) : std::nullopt;
}

Errors repeated_policies(const std::vector<PolicyChoice>& choices, const std::string& file,
                         const std::string& place) {
  Errors faults;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!same_before(choices, i)) continue;
    faults.push_back({file, place, "found " + quote_found(choices[i].name) +
                                       " again with the same parameters; expected it once"});
  }
  return faults;
}

}  // namespace bubblesim::run
