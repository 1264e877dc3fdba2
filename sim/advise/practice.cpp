#include "sim/advise/practice.hpp"

#include <fmt/format.h>

#include "sim/advise/answer_parts.hpp"

namespace bubblesim::advise {
namespace {

std::string fill_command(const Tried& tried) {
  std::string line = "bubblesim fill --policy " + tried.proposal.policy->name;
  for (const auto& [name, value] : tried.proposal.parameters) {
    line += " --set " + name + "=" + policy::value_text(value);
  }
  if (tried.result.p95) line += " --filler-role online";
  return line + " --train 'TRAINING COMMAND' --fill 'FILLER COMMAND'";
}

Practice live(const Advice& advice) {
  const Tried& best = *advice.found.best;
  if (advice.why_not_live.empty()) return {"live", fill_command(best), ""};
  std::string note = "fill refuses " + best.proposal.policy->name + ": " + advice.why_not_live;
  if (!advice.found.live) {
    return {"live", "", note + "; nothing that it takes gains within the limits"};
  }
  note += fmt::format("; the best that it takes keeps {:.4f} and gains {:.0f} % of it",
                      advice.found.live->result.kept,
                      100 * advice.found.live->result.gain / best.result.gain);
  return {"live", fill_command(*advice.found.live), note};
}

}  // namespace

std::vector<Practice> practice_of(const Advice& advice, const std::string& config) {
  if (!gains_something(advice)) return {};
  const std::string file = config.empty() ? "CONFIG" : config;
  const std::string note = config.empty() ? "advise --config CONFIG writes it" : "";
  std::string measure = "bubblesim measure " + file;
  if (advice.measured_rank > 0) measure += fmt::format(" --rank {}", advice.measured_rank);
  const Practice simulate{"simulate", "bubblesim run " + file, note};
  if (!advice.tools_asked) return {simulate};
  return {simulate,
          {"measure", advice.why_not_measured.empty() ? measure : "", advice.why_not_measured},
          live(advice)};
}

}  // namespace bubblesim::advise
