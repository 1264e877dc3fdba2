// What puts a recommendation into practice: lines for `run`, `measure` and `fill`.
#pragma once

#include <string>
#include <vector>

#include "sim/advise/advice.hpp"

namespace bubblesim::advise {

struct Practice {
  std::string word;     ///< "simulate", "measure", "live"
  std::string command;  ///< for a shell, in the folder that `config` is relative to
  std::string note;     ///< what is not as recommended; may be empty
};

/// Nothing where nothing is recommended. `config`: the file of the recommendation's run config.
[[nodiscard]] std::vector<Practice> practice_of(const Advice& advice, const std::string& config);

}  // namespace bubblesim::advise
