#include "sim/advise/advice_text.hpp"

#include <fmt/format.h>

#include "sim/advise/answer_parts.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

std::string effort_text(const Advice& advice) {
  const Found& found = advice.found;
  return fmt::format("{} settings, {} trials, the longest {} simulated{}; {} runs now, {} stored "
                     "before\n",
                     found.all.size(), found.trials, format_duration(found.length),
                     found.shortened ? " (a larger --budget allows more)" : "", advice.simulated,
                     advice.stored);
}

}  // namespace

std::string advice_text(const Advice& advice, const std::string& config) {
  std::string text;
  for (const AnswerPart& part : answer_parts(advice, config)) {
    text += part.title + "\n";
    for (const AnswerLine& line : part.lines) {
      text += fmt::format("  {:<10} {}\n", line.word, line.text);
    }
  }
  return text + effort_text(advice);
}

}  // namespace bubblesim::advise
