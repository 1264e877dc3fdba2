// An answer as headings and lines: the wording shared by text and page.
#pragma once

#include <string>
#include <vector>

#include "sim/advise/advice.hpp"

namespace bubblesim::advise {

struct AnswerLine {
  std::string word;  ///< "gains"
  std::string text;
};

struct AnswerPart {
  std::string title;
  std::vector<AnswerLine> lines;
};

/// The job alone; the recommendation, or why there is none; the runner-up; the limits of the gain;
/// the commands. `config`: the file of the recommendation's run config.
[[nodiscard]] std::vector<AnswerPart> answer_parts(const Advice& advice, const std::string& config);

/// The recommendation's figures as means over all seeds that it was simulated under.
[[nodiscard]] TrialResult mean_over_seeds(const TrialResult& first, const Confirmation& confirmed);
/// Whether there is a recommendation to run something.
[[nodiscard]] bool gains_something(const Advice& advice);
/// The setting whose bubbles are analysed: the recommendation; if that gains nothing, the setting
/// least beyond the limits; null: none.
[[nodiscard]] const Tried* analysed(const Advice& advice);

/// The setting as people read it: "mps filler_percentage=30, rate_per_s 12".
[[nodiscard]] std::string setting_text(const Proposal& proposal);

/// A setting's gain and cost, in GPUs' worth of the whole job.
struct Balance {
  double gains = 0;
  double costs = 0;  ///< of training, negative where training gains
  [[nodiscard]] bool pays() const { return gains > costs; }
};
[[nodiscard]] Balance balance_of(const JobAlone& alone, const TrialResult& result);

}  // namespace bubblesim::advise
