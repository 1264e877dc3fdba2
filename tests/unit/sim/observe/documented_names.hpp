// Names as the tables of OUTPUTS.md write them: "a_{b,c}" stands for a_b and a_c, in this order.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bubblesim::observe {

inline std::vector<std::string> documented_names(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  std::stringstream choices(pattern.substr(open + 1, close - open - 1));
  std::vector<std::string> names;
  for (std::string choice; std::getline(choices, choice, ',');) {
    for (std::string& name :
         documented_names(pattern.substr(0, open) + choice + pattern.substr(close + 1))) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace bubblesim::observe
