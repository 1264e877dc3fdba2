// Answers of `bubblesim advise` as one self-contained HTML page: the text of the answer, and every
// setting that was tried, by the throughput that training keeps and the gain of the filler.
#pragma once

#include <span>
#include <string>

#include "sim/advise/advice.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::report {

/// An answer, and the path of its run config.
struct ShownAdvice {
  const advise::Advice* advice = nullptr;
  std::string config;
};

/// The page. Texts are embedded as data only: none can end a script or be markup.
[[nodiscard]] std::string advice_page(std::span<const ShownAdvice> answers);

// A fleet's plan as one self-contained HTML page.

/// `plan`: the JSON that bubblesim.fleet prints, with its summary, a sentence.
[[nodiscard]] std::string fleet_page(const Json& plan);

}  // namespace bubblesim::report
