#include "sim/advise/advice_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/advise/answer_parts.hpp"
#include "sim/base/escape_controls.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

/// A search that is stopped has no trial of full length.
Duration longest(const Found& found) {
  Duration most{};
  for (const Tried& tried : found.all) {
    if (tried.result.done) most = std::max(most, tried.length);
  }
  return most;
}

/// How the budget cut the search; empty: it did not.
std::string searched_text(const Advice& advice) {
  const Found& found = advice.found;
  if (!found.shortened || found.searched >= found.length) return "";
  const double budget = to_seconds(advice.question.budget) * kEventsPerSecond;
  const bool within = advice.question.confirmed_at == ConfirmedAt::kAffordedLength;
  return fmt::format(", {} in the search (a larger --budget allows more); to confirm took {:.0f} % "
                     "of the budget{}", format_duration(found.searched),
                     100 * found.confirmation_events / budget, within ? "" : " besides");
}

std::string effort_text(const Advice& advice) {
  const Found& found = advice.found;
  return fmt::format("{}{} settings, {} trials of at most {}{}; {} runs now, {} stored before\n",
                     advice.stopped ? "stopped before the search had ended: " : "",
                     found.all.size(), found.trials, format_duration(longest(found)),
                     searched_text(advice), advice.simulated, advice.stored);
}

}  // namespace

std::string advice_text(const Advice& advice, const std::string& config) {
  std::string text;
  for (const AnswerPart& part : answer_parts(advice, config)) {
    text += escape_controls(part.title) + "\n";
    for (const AnswerLine& line : part.lines) {
      text += fmt::format("  {:<10} {}\n", line.word, escape_controls(line.text));
    }
  }
  return text + effort_text(advice);
}

}  // namespace bubblesim::advise
