// Answers of `bubblesim advise` as one HTML page that needs nothing else: the text of the answer,
// and every setting that was tried, by what training keeps and what the filler gains.
#pragma once

#include <span>
#include <string>

#include "sim/advise/advice.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::report {

/// An answer, and the file that its run config is written to.
struct ShownAdvice {
  const advise::Advice* advice = nullptr;
  std::string config;
};

/// Texts stand in it as data only: none can end a script or be markup.
[[nodiscard]] std::string advice_page(std::span<const ShownAdvice> answers);

// A fleet's plan as one HTML page that needs nothing else.

/// `plan`: what bubblesim.fleet prints as JSON, and its summary, a sentence.
[[nodiscard]] std::string fleet_page(const Json& plan);

}  // namespace bubblesim::report
