#include "sim/advise/advice.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/advise/answer_parts.hpp"
#include "sim/advise/comparison.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"

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

namespace {

Json latency_or_null(const std::optional<Duration>& span) {
  return span ? Json(to_ns(*span)) : Json(nullptr);
}

Json result_json(const TrialResult& result) {
  return {{"training_kept", result.kept},
          {"gpus_worth", result.gain},
          {"requests_per_s", result.requests_per_s},
          {"tokens_per_s", result.tokens_per_s},
          {"latency_p95_ns", latency_or_null(result.p95)},
          {"ttft_p95_ns", latency_or_null(result.tokens.ttft)},
          {"tpot_p95_ns", latency_or_null(result.tokens.tpot)},
          {"overloaded", result.overloaded}};
}

Json results_json(const std::vector<TrialResult>& results) {
  Json list = Json::array();
  for (const TrialResult& result : results) list.push_back(result_json(result));
  return list;
}

Json places_json(const Proposal& proposal) {
  Json places = Json::object();
  for (const auto& [pointer, value] : proposal.places) {
    places[pointer] = Json::parse(value, nullptr, false);
  }
  return places;
}

Json tried_json(const Tried& tried, const Limits& limits) {
  Json demands = Json::array();
  for (const policy::SystemFeature feature : demanded(tried.proposal)) {
    demands.push_back(std::string(policy::feature_word(feature)));
  }
  Json out{{"policy", policy_entry(tried.proposal)},
           {"places", places_json(tried.proposal)},
           {"demands", std::move(demands)},
           {"available", tried.available},
           {"simulated_ns", to_ns(tried.length)},
           {"done", tried.result.done}};
  if (!tried.result.done) {
    out["reason"] = tried.result.reason;
    return out;
  }
  out.update(result_json(tried.result));
  out["beyond_limits"] = violation(tried.result, limits);
  return out;
}

Json list_of(const std::vector<Tried>& all, const Limits& limits) {
  Json list = Json::array();
  for (const Tried& tried : all) list.push_back(tried_json(tried, limits));
  return list;
}

Json maybe(const std::optional<Tried>& tried, const Limits& limits) {
  return tried ? tried_json(*tried, limits) : Json(nullptr);
}

Json shares_json(const std::vector<CauseShare>& causes) {
  Json list = Json::array();
  for (const CauseShare& cause : causes) {
    list.push_back({{"cause", cause.cause},
                    {"share", cause.share},
                    {"filled", cause.filled}});
  }
  return list;
}

Json alone_json(const Advice& advice) {
  const JobAlone& alone = advice.alone;
  Json own = Json::array();
  for (const OwnFiller& filler : alone.fillers) own.push_back(filler.requests_per_s);
  return {{"device", alone.device},
          {"gpus", alone.gpus * alone.gpus_each},
          {"gpus_simulated", alone.gpus},
          {"iteration_ns", to_ns(alone.iteration)},
          {"bubble_share", alone.bubble},
          {"causes", shares_json(alone.causes)},
          {"filler_own_requests_per_s", std::move(own)}};
}

Json confirmation_json(const Found& found) {
  const Confirmation& confirmed = found.confirmed;
  const TrialResult mean =
      found.best ? mean_over_seeds(found.best->result, confirmed) : TrialResult{};
  return {{"seeds", results_json(confirmed.seeds)},
          {"random", confirmed.random},
          {"longer_windows", results_json(confirmed.windows)},
          {"mean_gpus_worth", mean.gain},
          {"mean_requests_per_s", mean.requests_per_s},
          {"broke", confirmed.broke},
          {"expected_break_rate", break_rate(confirmed)},
          {"training_slower_5_percent", results_json(confirmed.slower)},
          {"training_faster_5_percent", results_json(confirmed.faster)}};
}

Json errors_json(const std::vector<KnownError>& errors) {
  Json list = Json::array();
  for (const KnownError& error : errors) {
    list.push_back({{"device", error.device},
                    {"here", error.same_device},
                    {"figure", error.figure},
                    {"error_percent", error.error_percent},
                    {"table", error.source}});
  }
  return list;
}

Json practice_json(const Advice& advice, const std::string& config) {
  Json list = Json::array();
  for (const Practice& practice : practice_of(advice, config)) {
    list.push_back({{"step", practice.word},
                    {"command", practice.command.empty() ? Json(nullptr) : Json(practice.command)},
                    {"note", practice.note}});
  }
  return list;
}

Json parts_json(const Advice& advice, const std::string& config) {
  Json list = Json::array();
  for (const AnswerPart& part : answer_parts(advice, config)) {
    Json lines = Json::array();
    for (const AnswerLine& line : part.lines) lines.push_back(Json::array({line.word, line.text}));
    list.push_back({{"title", part.title}, {"lines", std::move(lines)}});
  }
  return list;
}

Json looser_json(const Advice& advice) {
  Json list = Json::array();
  for (const Looser& looser : advice.found.looser) {
    list.push_back({{"limit", looser.limit},
                    {"setting", tried_json(looser.tried, advice.question.limits)}});
  }
  return list;
}

Json effort_json(const Advice& advice) {
  const Found& found = advice.found;
  return {{"settings", found.all.size()},   {"trials", found.trials},
          {"events", found.events},         {"length_ns", to_ns(found.length)},
          {"warmup_ns", to_ns(found.warmup)}, {"shortened", found.shortened},
          {"searched_length_ns", to_ns(found.searched)},
          {"confirmation_events", found.confirmation_events},
          {"stopped", advice.stopped}};
}

}  // namespace

Json advice_json(const Advice& advice, const std::string& config) {
  const Found& found = advice.found;
  const Limits& limits = advice.question.limits;
  const Balance balance = found.best ? balance_of(advice.alone, found.best->result) : Balance{};
  return {{"name", advice.question.name},
          {"limits", {{"keep", limits.keep},
                      {"p95_ns", latency_or_null(limits.p95)},
                      {"ttft_ns", latency_or_null(limits.slo.ttft)},
                      {"tpot_ns", latency_or_null(limits.slo.tpot)}}},
          {"alone", alone_json(advice)},
          {"bounds", list_of(found.bounds, limits)},
          {"recommended", maybe(found.best, limits)},
          {"confirmed", confirmation_json(found)},
          {"measured_errors", errors_json(advice.errors)},
          {"runner_up", maybe(found.runner_up, limits)},
          {"least_beyond_limits", maybe(found.least, limits)},
          {"would_need", found.least ? Json(needed_limits(found.least->result, limits))
                                     : Json(nullptr)},
          {"gains_gpus", balance.gains},
          {"costs_gpus", balance.costs},
          {"unfilled", shares_json(advice.unfilled)},
          {"with_looser_limits", looser_json(advice)},
          {"out_of_reach", list_of(found.out_of_reach, limits)},
          {"with_memory",
           advice.with_memory ? result_json(*advice.with_memory) : Json(nullptr)},
          {"practice", practice_json(advice, config)},
          {"text", parts_json(advice, config)},
          {"search", effort_json(advice)},
          {"tried", list_of(found.all, limits)}};
}

}  // namespace bubblesim::advise
