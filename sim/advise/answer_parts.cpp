#include "sim/advise/answer_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

constexpr double kShareTold = 0.0005;   // of the time, of a cause of bubbles
constexpr double kMostlyFilled = 0.8;   // of a bubble's time: then nothing is in the way
constexpr double kWorthIdle = 0.05;     // of the time, unfilled, that a reason is given for
constexpr std::size_t kDroppedTold = 3;
constexpr double kMoreGained = 1.006;   // times the best's gain: then a setting is better
constexpr int kEnoughIterations = 8;    // of training, for a figure of what it keeps
constexpr int kEnoughPasses = 10;       // of the filler, for a figure of what it gains

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

std::string p95_text(const TrialResult& result) {
  return (result.p95_is_lower_bound ? ">" : "") + milliseconds(*result.p95);
}

std::string latency_text(const TrialResult& result) {
  if (result.overloaded) return ", overloaded";
  std::string text;
  if (result.p95) text += ", p95 " + p95_text(result);
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

/// Says that too little of something is measured; nothing: there is enough.
std::optional<AnswerLine> too_few(const Advice& advice, Duration each, int enough_of,
                                  const std::string& what) {
  const Duration measured = advice.found.measured();
  if (each <= Duration{} || measured >= enough_of * each) return std::nullopt;
  const Duration enough = advice.found.warmup + enough_of * each;
  return AnswerLine{"short",
                    fmt::format("the {:.3g} s that are measured hold {:.1f} {}, fewer than {}: a "
                                "longer run may keep less; one of {:.0f} s is enough",
                                to_seconds(measured), to_seconds(measured) / to_seconds(each), what,
                                enough_of, std::ceil(to_seconds(enough)))};
}

/// Policies that the budget has no trial for; empty: none.
std::string unafforded_text(const Found& found) {
  std::string text;
  for (const Unafforded& policy : found.unafforded) {
    text += fmt::format("{} {} (needs {:.2g} s of budget)", text.empty() ? "; not judged:" : ",",
                        policy.policy->name, policy.events / kEventsPerSecond);
  }
  return text;
}

/// Says that trials which can be judged cost more than the budget has.
std::optional<AnswerLine> too_little_budget(const Advice& advice) {
  const Found& found = advice.found;
  const std::string budget = format_duration(advice.question.budget);
  if (found.needed_events > 0) {
    return AnswerLine{"budget",
                      fmt::format("{} does not reach for a whole search, whose trials last ten "
                                  "iterations of training and passes of the filler: only defaults "
                                  "were begun with; --budget {:.0f}s would{}", budget,
                                  std::ceil(found.needed_events / kEventsPerSecond),
                                  unafforded_text(found))};
  }
  if (!found.exhausted && found.unafforded.empty()) return std::nullopt;
  const char* what = found.exhausted ? "to confirm all that would be told" : "for every policy";
  return AnswerLine{"budget", fmt::format("{} does not reach {}{}", budget, what,
                                          unafforded_text(found))};
}

/// Which policies were not judged, and what would judge them.
std::optional<AnswerLine> not_judged(const Advice& advice) {
  const Found& found = advice.found;
  if (found.unsettled.empty()) return std::nullopt;
  std::string text = "not judged:";
  Duration longest{};
  for (const Unsettled& unsettled : found.unsettled) {
    text += fmt::format("{} {} (settles in {:.3g} s)", longest == Duration{} ? "" : ",",
                        unsettled.policy->name, to_seconds(unsettled.settling));
    longest = std::max(longest, unsettled.settling);
  }
  return AnswerLine{"settling", text + fmt::format("; the warm-up is shorter: --warmup {:.0f}s "
                                                   "would, and a longer --duration",
                                                   std::ceil(to_seconds(longest)))};
}

AnswerPart alone_part(const Advice& advice) {
  const JobAlone& alone = advice.alone;
  AnswerPart part{fmt::format("{}: {} an iteration alone on {} x {}", advice.question.name,
                              milliseconds(alone.iteration), alone.gpus * alone.gpus_each,
                              alone.device),
                  {}};
  for (const auto& [name, entry] : advice.counters) {
    if (entry.severity < Severity::kLoss) continue;
    part.lines.push_back({"! loss", fmt::format("{}: {}", name, entry.help)});
  }
  std::string causes;
  for (const CauseShare& cause : alone.causes) {
    if (cause.share < kShareTold) continue;
    causes += fmt::format("{}{} {:.1f} %", causes.empty() ? "" : ", ", cause.cause,
                          100 * cause.share);
  }
  part.lines.push_back({"bubbles", fmt::format("{:.1f} % of the time ({})", 100 * alone.bubble,
                                               causes)});
  if (!alone.memory_known && alone.fillers_have_memory) {
    part.lines.push_back({"memory", "of training is not known and taken as 0: fillers may fit here "
                                    "that do not fit beside the job"});
  }
  for (auto& line : {too_few(advice, alone.iteration, kEnoughIterations, "iterations"),
                     too_few(advice, alone.filler_pass, kEnoughPasses, "passes of the filler"),
                     too_little_budget(advice), not_judged(advice)}) {
    if (line) part.lines.push_back(*line);
  }
  for (const Tried& bound : advice.found.bounds) {
    if (violation(bound.result, advice.question.limits) > 0) continue;
    part.lines.push_back({"bound", fmt::format("{} (oracle) would gain {}",
                                               bound.proposal.policy->name,
                                               gain_text(advice, bound.result))});
  }
  return part;
}

std::string shares_of_bounds(const Advice& advice, const TrialResult& result) {
  std::string text;
  for (const Tried& bound : advice.found.bounds) {
    // An online oracle that gains less had its search of loads end lower; it is no bound.
    const bool is_bound = result.offered_per_s <= 0 || bound.result.gain >= result.gain;
    const bool keeps = violation(bound.result, advice.question.limits) <= 0;
    if (bound.result.gain <= 0 || !keeps || !is_bound) continue;
    text += fmt::format("{}{:.0f} % of {}'s", text.empty() ? "; " : ", ",
                        100 * result.gain / bound.result.gain, bound.proposal.policy->name);
  }
  return text;
}

void add_latency(std::vector<AnswerLine>& lines, const std::string& word,
                 std::optional<Duration> latency, std::optional<Duration> limit,
                 const char* bound = "") {
  if (!latency) return;
  std::string text = bound + milliseconds(*latency);
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

/// Requests a second of the whole job under the first seed and the others, least and most.
std::string spread_text(const Advice& advice, const TrialResult& first) {
  const std::vector<TrialResult>& seeds = advice.found.confirmed.seeds;
  if (!advice.found.confirmed.random || seeds.empty()) return "";
  double least = first.requests_per_s;
  double most = first.requests_per_s;
  for (const TrialResult& seed : seeds) {
    least = std::min(least, seed.requests_per_s);
    most = std::max(most, seed.requests_per_s);
  }
  if (least == most) return "";
  const double all = advice.alone.gpus_each;
  return fmt::format("; {:.4g} to {:.4g} requests/s under {} seeds", all * least, all * most,
                     seeds.size() + 1);
}

/// What rounds to nothing is 0.00, not -0.00.
double lost_percent(const TrialResult& result) {
  constexpr double kHalfOfLast = 0.005;
  const double lost = 100 * (1 - result.kept);
  return std::abs(lost) < kHalfOfLast ? 0 : lost;
}

void add_margins(const Advice& advice, const TrialResult& result, std::vector<AnswerLine>& lines) {
  const Limits& limits = advice.question.limits;
  lines.push_back({"costs", fmt::format("{:.2f} % of training: keeps {:.4f}, limit {:g}",
                                        lost_percent(result), result.kept, limits.keep)});
  const TrialResult mean = mean_over_seeds(result, advice.found.confirmed);
  if (std::string worth = worth_text(balance_of(advice.alone, mean)); !worth.empty()) {
    lines.push_back({"worth", std::move(worth)});
  }
  add_latency(lines, "p95", result.p95, limits.p95, result.p95_is_lower_bound ? ">" : "");
  add_latency(lines, "ttft", result.tokens.ttft, limits.slo.ttft);
  add_latency(lines, "tpot", result.tokens.tpot, limits.slo.tpot);
}

void add_varied(const std::vector<TrialResult>& results, const std::string& word,
                const Advice& advice, std::vector<AnswerLine>& lines) {
  if (results.empty()) return;
  const TrialResult& result = results.front();
  const std::string broken = broken_limits(result, advice.question.limits);
  lines.push_back({word, fmt::format("of training's durations: gains {:+.1f} %, keeps {:.4f}{}{}",
                                     100 * (result.gain / advice.found.best->result.gain - 1),
                                     result.kept, latency_text(result),
                                     broken.empty() ? "" : "; " + broken)});
}

std::string seeds_text(const Confirmation& confirmed) {
  const std::vector<TrialResult>& again = confirmed.random ? confirmed.seeds : confirmed.windows;
  double least = 1;
  std::optional<Duration> longest;
  for (const TrialResult& result : again) {
    least = std::min(least, result.kept);
    if (result.p95) longest = std::max(longest.value_or(Duration{}), *result.p95);
  }
  const std::string worst =
      fmt::format("least kept {:.4f}{}", least,
                  longest ? ", longest p95 " + milliseconds(*longest) : "");
  if (!confirmed.random) {
    return fmt::format("nothing in this run is random; {} of {} longer windows, up to twice as "
                       "long, break a limit; {}", confirmed.broke, again.size(), worst);
  }
  return fmt::format("{} of {} other seeds break a limit (expect up to {:.0f} %); {}",
                     confirmed.broke, again.size(), 100 * break_rate(confirmed), worst);
}

std::string errors_text(const Advice& advice) {
  std::string text;
  const bool same_device = std::ranges::any_of(advice.errors, &KnownError::same_device);
  for (const KnownError& error : advice.errors) {
    if (error.same_device != same_device) continue;
    text += fmt::format("{}{} {:g} %", text.empty() ? "" : ", ", error.figure,
                        error.error_percent);
    if (!same_device) text += " (" + error.device + ")";
  }
  if (text.empty()) return "of the simulator under this policy: never measured";
  return "of the simulator under this policy" +
         std::string(same_device ? "" : ", on other devices only") + ": " + text;
}

void add_sureness(const Advice& advice, std::vector<AnswerLine>& lines) {
  const Found& found = advice.found;
  const Confirmation& confirmed = found.confirmed;
  if ((confirmed.random ? confirmed.seeds : confirmed.windows).empty()) {
    const char* why = advice.stopped ? "stopped" : "the budget does not reach";
    lines.push_back({"sure", fmt::format("not confirmed: {}; the best so far, of a trial of {}",
                                         why, format_duration(found.best->length))});
  } else {
    lines.push_back({"sure", seeds_text(found.confirmed)});
    add_varied(found.confirmed.slower, "+5 %", advice, lines);
    add_varied(found.confirmed.faster, "-5 %", advice, lines);
  }
  lines.push_back({"error", errors_text(advice)});
}

/// Settings that kept the limits in trials shorter than what is confirmed and gained more than
/// `gain`; the best first.
void add_brief(const Advice& advice, double gain, const char* word,
               std::vector<AnswerLine>& lines) {
  std::vector<const Tried*> brief;
  for (const Tried& tried : advice.found.all) {
    const bool gained = tried.available && tried.result.done && tried.result.gain > gain &&
                        violation(tried.result, advice.question.limits) <= 0;
    if (gained && tried.measured() < advice.found.measured()) brief.push_back(&tried);
  }
  std::ranges::stable_sort(brief, {}, [](const Tried* tried) { return -tried->result.gain; });
  brief.resize(std::min(brief.size(), kDroppedTold));
  for (const Tried* tried : brief) {
    lines.push_back({word, fmt::format("{}: in a trial of {} alone, which is not confirmed",
                                       tried_text(advice, *tried),
                                       format_duration(tried->length))});
  }
}

/// Settings that gained something within the limits and are not recommended.
void add_dropped(const Advice& advice, std::vector<AnswerLine>& lines) {
  for (const auto& [setting, confirmed] : advice.found.failed) {
    const bool random = confirmed.random;
    lines.push_back({"dropped",
                     fmt::format("{}: {} of {} {} break a limit", tried_text(advice, setting),
                                 confirmed.broke,
                                 random ? confirmed.seeds.size() : confirmed.windows.size(),
                                 random ? "other seeds" : "longer windows")});
  }
  add_brief(advice, 0, "dropped", lines);
}

void add_nearest(const Advice& advice, std::vector<AnswerLine>& lines) {
  const auto& least = advice.found.least;
  if (!least) {
    lines.push_back({"nearest", "no trial beyond the limits gained anything"});
    return;
  }
  const Limits& limits = advice.question.limits;
  const bool brief = least->measured() < advice.found.measured();
  const std::string where = brief ? ", in a trial of " + format_duration(least->length) : "";
  lines.push_back({"nearest", fmt::format("{:.1f} % beyond{}: {}",
                                          100 * violation(least->result, limits), where,
                                          tried_text(advice, *least))});
  lines.push_back({"would need", needed_limits(least->result, limits)});
}

/// Nothing keeps the limits, or only doing nothing does.
AnswerPart nothing_part(const Advice& advice) {
  AnswerPart part;
  add_nearest(advice, part.lines);
  const std::size_t told = part.lines.size();
  add_dropped(advice, part.lines);
  const bool dropped = part.lines.size() > told;
  if (advice.stopped) {
    part.title = dropped ? "Stopped before what gained something was confirmed"
                         : "Stopped before the search ended: nothing is said of what was not tried";
  } else if (!advice.found.best) {
    part.title = "Nothing that was tried keeps the limits";
  } else if (dropped) {
    part.title = "Leave it alone: what gained something within the limits did not hold";
  } else {
    part.title = "Leave it alone: nothing that was tried gains anything within the limits";
  }
  return part;
}

AnswerPart recommendation_part(const Advice& advice) {
  const Tried& best = *advice.found.best;
  const TrialResult mean = mean_over_seeds(best.result, advice.found.confirmed);
  AnswerPart part{"Run " + setting_text(best.proposal), {}};
  part.lines.push_back({"needs", features_text(demanded(best.proposal))});
  part.lines.push_back({"gains", gain_text(advice, mean) + shares_of_bounds(advice, mean) +
                                     spread_text(advice, best.result)});
  add_margins(advice, best.result, part.lines);
  add_sureness(advice, part.lines);
  if (advice.found.exhausted || advice.stopped) {
    add_brief(advice, best.result.gain * kMoreGained, "better", part.lines);
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
  if (analysed(advice)->result.p95) return "; more requests would break a limit";
  if (advice.alone.filler_longest <= Duration{}) return "";
  return "; no shorter bubble takes the filler's longest operation, " +
         milliseconds(advice.alone.filler_longest) + ": a smaller batch has shorter ones";
}

AnswerPart in_the_way_part(const Advice& advice) {
  AnswerPart part{gains_something(advice) ? "In the way of more" : "In the way", {}};
  if (!gains_something(advice) && analysed(advice) != nullptr) {
    part.title += ", under the nearest setting";
  }
  for (const CauseShare& cause : advice.unfilled) {
    if (cause.share < kShareTold || analysed(advice) == nullptr) continue;
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
  for (const Looser& looser : advice.found.looser) {
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

TrialResult mean_over_seeds(const TrialResult& first, const Confirmation& confirmed) {
  TrialResult mean = first;
  if (!confirmed.random) return mean;
  for (const TrialResult& seed : confirmed.seeds) {
    mean.gain += seed.gain;
    mean.kept += seed.kept;
    mean.requests_per_s += seed.requests_per_s;
    mean.tokens_per_s += seed.tokens_per_s;
  }
  const auto count = static_cast<double>(confirmed.seeds.size() + 1);
  for (double* figure : {&mean.gain, &mean.kept, &mean.requests_per_s, &mean.tokens_per_s}) {
    *figure /= count;
  }
  return mean;
}

bool gains_something(const Advice& advice) {
  return advice.found.best && advice.found.best->result.gain > 0;
}

const Tried* analysed(const Advice& advice) {
  if (gains_something(advice)) return &*advice.found.best;
  return advice.found.least ? &*advice.found.least : nullptr;
}

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
  const bool gains = gains_something(advice);
  parts.push_back(gains ? recommendation_part(advice) : nothing_part(advice));
  if (gains && advice.found.runner_up) parts.push_back(runner_up_part(advice));
  for (AnswerPart& part : std::vector{in_the_way_part(advice), practice_part(advice, config)}) {
    if (!part.lines.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace bubblesim::advise
