#include "sim/advise/answer_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/advise/comparison.hpp"
#include "sim/advise/practice.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

constexpr double kShareTold = 0.0005;   // of the time, of a cause of bubbles
constexpr double kMostlyFilled = 0.8;   // of a bubble's time: then nothing is in the way
constexpr double kWorthIdle = 0.05;     // of the time, unfilled, that a reason is given for

std::string features_text(const std::vector<policy::SystemFeature>& features) {
  std::string text;
  for (const policy::SystemFeature feature : features) {
    text += (text.empty() ? "" : ", ") + std::string(policy::feature_word(feature));
  }
  return text.empty() ? "nothing that every system has not" : text;
}

std::string gain_text(const Advice& advice, const TrialResult& result) {
  const double all = advice.alone.gpus_each;  // gains are of the simulated GPUs
  std::string text = fmt::format("{:.4g} requests/s", all * result.requests_per_s);
  if (result.tokens_per_s > 0) text += fmt::format(", {:.4g} tokens/s", all * result.tokens_per_s);
  return text + fmt::format(", worth {:.3g} GPUs", balance_of(advice.alone, result).gains);
}

std::string latency_text(const TrialResult& result) {
  if (result.overloaded) return ", overloaded";
  std::string text;
  if (result.p95) text += ", p95 " + milliseconds(*result.p95);
  if (result.tokens.ttft) text += ", to the first token " + milliseconds(*result.tokens.ttft);
  if (result.tokens.tpot) text += ", a token " + milliseconds(*result.tokens.tpot);
  return text;
}

std::string result_text(const Advice& advice, const TrialResult& result) {
  return fmt::format("{}, training keeps {:.3f}{}", gain_text(advice, result), result.kept,
                     latency_text(result));
}

std::string tried_text(const Advice& advice, const Tried& tried) {
  return setting_text(tried.proposal) + ": " + result_text(advice, tried.result);
}

AnswerPart alone_part(const Advice& advice) {
  const JobAlone& alone = advice.alone;
  AnswerPart part{fmt::format("{}: {} an iteration alone on {} x {}", advice.question.name,
                              milliseconds(alone.iteration), alone.gpus * alone.gpus_each,
                              alone.device),
                  {}};
  std::string causes;
  for (const CauseShare& cause : alone.causes) {
    causes += fmt::format("{}{} {:.1f} %", causes.empty() ? "" : ", ", cause.cause,
                          100 * cause.share);
  }
  part.lines.push_back({"bubbles", fmt::format("{:.1f} % of the time ({})", 100 * alone.bubble,
                                               causes)});
  for (const Tried& bound : advice.found.bounds) {
    part.lines.push_back({"bound", fmt::format("{} (oracle) would gain {}",
                                               bound.proposal.policy->name,
                                               gain_text(advice, bound.result))});
  }
  return part;
}

std::string shares_of_bounds(const Advice& advice, const TrialResult& result) {
  std::string text;
  for (const Tried& bound : advice.found.bounds) {
    if (bound.result.gain <= 0) continue;
    text += fmt::format("{}{:.0f} % of {}'s", text.empty() ? "; " : ", ",
                        100 * result.gain / bound.result.gain, bound.proposal.policy->name);
  }
  return text;
}

void add_latency(std::vector<AnswerLine>& lines, const std::string& word,
                 std::optional<Duration> latency, std::optional<Duration> limit) {
  if (!latency) return;
  std::string text = milliseconds(*latency);
  if (limit) {
    text += fmt::format(", limit {}: {:.0f} % of it left", milliseconds(*limit),
                        100 * (1 - to_seconds(*latency) / to_seconds(*limit)));
  }
  lines.push_back({word, std::move(text)});
}

std::string worth_text(const Balance& balance) {
  if (balance.costs <= 0) return "";
  if (balance.pays()) {
    return fmt::format("{:.1f} times what training loses ({:.3g} GPUs)",
                       balance.gains / balance.costs, balance.costs);
  }
  return fmt::format("less than training loses ({:.3g} GPUs): worth it only if a GPU's time is "
                     "worth {:.1f} times as much to the filler", balance.costs,
                     balance.costs / balance.gains);
}

void add_margins(const Advice& advice, const TrialResult& result, std::vector<AnswerLine>& lines) {
  const Limits& limits = advice.question.limits;
  lines.push_back({"costs", fmt::format("{:.2f} % of training: keeps {:.4f}, limit {:g}",
                                        100 * (1 - result.kept), result.kept, limits.keep)});
  if (std::string worth = worth_text(balance_of(advice.alone, result)); !worth.empty()) {
    lines.push_back({"worth", std::move(worth)});
  }
  add_latency(lines, "p95", result.p95, limits.p95);
  add_latency(lines, "ttft", result.tokens.ttft, limits.slo.ttft);
  add_latency(lines, "tpot", result.tokens.tpot, limits.slo.tpot);
}

void add_varied(const std::vector<TrialResult>& results, const std::string& word,
                const TrialResult& best, std::vector<AnswerLine>& lines) {
  if (results.empty()) return;
  const TrialResult& result = results.front();
  lines.push_back({word, fmt::format("of training's durations: gains {:+.1f} %, keeps {:.4f}{}",
                                     100 * (result.gain / best.gain - 1), result.kept,
                                     latency_text(result))});
}

std::string seeds_text(const Confirmation& confirmed) {
  double least = 1;
  std::optional<Duration> longest;
  for (const TrialResult& result : confirmed.seeds) {
    least = std::min(least, result.kept);
    if (result.p95) longest = std::max(longest.value_or(Duration{}), *result.p95);
  }
  return fmt::format("{} of {} other seeds break a limit (expect up to {:.0f} %); least kept {:.4f}"
                     "{}",
                     confirmed.broke, confirmed.seeds.size(), 100 * break_rate(confirmed), least,
                     longest ? ", longest p95 " + milliseconds(*longest) : "");
}

std::string errors_text(const Advice& advice) {
  std::string text;
  const bool here = std::ranges::any_of(advice.errors, &KnownError::here);
  for (const KnownError& error : advice.errors) {
    if (error.here != here) continue;
    text += fmt::format("{}{} {:g} %", text.empty() ? "" : ", ", error.figure,
                        error.error_percent);
    if (!here) text += " (" + error.device + ")";
  }
  if (text.empty()) return "of the simulator under this policy: never measured";
  return "of the simulator under this policy" + std::string(here ? "" : ", on other devices only") +
         ": " + text;
}

void add_sureness(const Advice& advice, std::vector<AnswerLine>& lines) {
  const Found& found = advice.found;
  if (found.confirmed.seeds.empty()) {
    lines.push_back({"sure", "not confirmed: stopped"});
  } else {
    lines.push_back({"sure", seeds_text(found.confirmed)});
    add_varied(found.confirmed.slower, "+5 %", found.best->result, lines);
    add_varied(found.confirmed.faster, "-5 %", found.best->result, lines);
  }
  lines.push_back({"error", errors_text(advice)});
}

AnswerPart recommendation_part(const Advice& advice) {
  const Tried& best = *advice.found.best;
  if (best.result.gain <= 0) {
    return {"Leave it alone: nothing that was tried gains anything within the limits", {}};
  }
  AnswerPart part{"Run " + setting_text(best.proposal), {}};
  part.lines.push_back({"needs", features_text(demanded(best.proposal))});
  part.lines.push_back(
      {"gains", gain_text(advice, best.result) + shares_of_bounds(advice, best.result)});
  add_margins(advice, best.result, part.lines);
  add_sureness(advice, part.lines);
  return part;
}

AnswerPart nothing_part(const Advice& advice) {
  AnswerPart part{"Nothing that was tried keeps the limits", {}};
  if (const auto& least = advice.found.least) {
    part.lines.push_back({"nearest", fmt::format("{:.1f} % beyond: {}",
                                                 100 * violation(least->result,
                                                                 advice.question.limits),
                                                 tried_text(advice, *least))});
  }
  return part;
}

AnswerPart runner_up_part(const Advice& advice) {
  const Tried& second = *advice.found.runner_up;
  return {"Runner-up " + setting_text(second.proposal),
          {{"lost", why_it_lost(second, *advice.found.best, advice.question.limits)}}};
}

/// What would free bubbles of a cause that stay as they are.
std::string remedy(const Advice& advice, const CauseShare& cause) {
  const bool filled = cause.filled >= kMostlyFilled * cause.share;
  if (filled || cause.share - cause.filled < kWorthIdle) return "";
  if (cause.cause == "collective") {
    return "; under a policy that takes collectives for work they stay empty (parameter "
           "collectives, where there is one)";
  }
  if (advice.found.best->result.p95) return "; more requests would break a limit";
  if (advice.alone.filler_longest <= Duration{}) return "";
  return "; no shorter bubble takes the filler's longest operation, " +
         milliseconds(advice.alone.filler_longest) + ": a smaller batch has shorter ones";
}

AnswerPart in_the_way_part(const Advice& advice) {
  AnswerPart part{"In the way of more", {}};
  for (const CauseShare& cause : advice.unfilled) {
    if (cause.share < kShareTold) continue;
    part.lines.push_back({cause.cause, fmt::format("{:.1f} % of the time, {:.0f} % of it filled{}",
                                                   100 * cause.share,
                                                   100 * cause.filled / cause.share,
                                                   remedy(advice, cause))});
  }
  if (advice.with_memory) {
    part.lines.push_back({"memory", fmt::format("{} of the GPUs do not admit the filler ({}); with "
                                                "room for it: {}",
                                                advice.refused.size(), advice.refused.front(),
                                                result_text(advice, *advice.with_memory))});
  }
  for (const Looser& looser : with_looser_limits(advice)) {
    part.lines.push_back({"limit", "with " + looser.limit + ", " + tried_text(advice,
                                                                               looser.tried)});
  }
  for (const Tried& other : worth_having(advice)) {
    part.lines.push_back({"system", "with " + features_text(demanded(other.proposal)) + ", " +
                                        tried_text(advice, other)});
  }
  return part;
}

AnswerPart practice_part(const Advice& advice, const std::string& config) {
  AnswerPart part{"Do it", {}};
  for (const Practice& practice : practice_of(advice, config)) {
    if (!practice.command.empty()) part.lines.push_back({practice.word, practice.command});
    if (!practice.note.empty()) {
      part.lines.push_back({practice.command.empty() ? practice.word : "", practice.note});
    }
  }
  return part;
}

/// "/fillers/0/arrivals/rate_per_s" as "rate_per_s".
std::string place_word(const std::string& pointer) {
  return pointer.substr(pointer.rfind('/') + 1);
}

}  // namespace

Balance balance_of(const JobAlone& alone, const TrialResult& result) {
  return {result.gain * alone.gpus_each, (1 - result.kept) * alone.gpus * alone.gpus_each};
}

std::string setting_text(const Proposal& proposal) {
  std::string text = proposal.policy->name;
  for (const auto& [name, value] : proposal.parameters) {
    text += " " + name + "=" + policy::value_text(value);
  }
  for (const auto& [pointer, value] : proposal.places) {
    text += ", " + place_word(pointer) + " " + value;
  }
  return text;
}

std::vector<AnswerPart> answer_parts(const Advice& advice, const std::string& config) {
  std::vector<AnswerPart> parts{alone_part(advice)};
  parts.push_back(advice.found.best ? recommendation_part(advice) : nothing_part(advice));
  const bool gains = advice.found.best && advice.found.best->result.gain > 0;
  if (gains && advice.found.runner_up) parts.push_back(runner_up_part(advice));
  for (AnswerPart& part : std::vector{in_the_way_part(advice), practice_part(advice, config)}) {
    if (!part.lines.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace bubblesim::advise
