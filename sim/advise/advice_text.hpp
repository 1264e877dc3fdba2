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

}  // namespace bubblesim::advise
