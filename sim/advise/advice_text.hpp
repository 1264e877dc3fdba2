// An answer as one screen of text, and as JSON for programs.
#pragma once

#include <string>

#include "sim/advise/advice.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::advise {

/// `config`: the file that the recommendation's run config is written to.
[[nodiscard]] std::string advice_text(const Advice& advice, const std::string& config);
/// Keys are in configs/README.md ("A question").
[[nodiscard]] Json advice_json(const Advice& advice, const std::string& config);

/// "keeps 0.975 of training, 0.005 below the limit": how the setting lost to the best.
[[nodiscard]] std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits);

/// The best setting of those tried if a limit were looser; nothing: it would not be better.
struct Looser {
  std::string limit;  ///< "keep 0.95"
  Tried tried;
};
[[nodiscard]] std::vector<Looser> with_looser_limits(const Advice& advice);

/// What puts the recommendation into practice: `run`, `measure`, `fill`.
[[nodiscard]] std::vector<std::string> commands(const Advice& advice, const std::string& config);

}  // namespace bubblesim::advise
