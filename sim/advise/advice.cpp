#include "sim/advise/advice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "sim/advise/answer_parts.hpp"
#include "sim/base/csv_table.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/sweep/sweep_config.hpp"

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

Json places_json(const Proposal& proposal) {
  Json places = Json::object();
  for (const auto& [pointer, value] : proposal.places) {
    places[pointer] = Json::parse(value, nullptr, false);
  }
  return places;
}

Json tried_json(const Tried& tried, const Limits& limits) {
  Json out{{"policy", policy_entry(tried.proposal)},
           {"places", places_json(tried.proposal)},
           {"demands", list_json(demanded(tried.proposal), policy::feature_word)},
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
  return list_json(all, [&](const Tried& tried) { return tried_json(tried, limits); });
}

Json maybe(const std::optional<Tried>& tried, const Limits& limits) {
  return tried ? tried_json(*tried, limits) : Json(nullptr);
}

Json share_json(const CauseShare& cause) {
  return {{"cause", cause.cause}, {"share", cause.share}, {"filled", cause.filled}};
}

Json alone_json(const Advice& advice) {
  const JobAlone& alone = advice.alone;
  return {{"device", alone.device},
          {"gpus", alone.gpus * alone.gpus_each},
          {"gpus_simulated", alone.gpus},
          {"iteration_ns", to_ns(alone.iteration)},
          {"bubble_share", alone.bubble},
          {"causes", list_json(alone.causes, share_json)},
          {"filler_own_requests_per_s",
           list_json(alone.fillers, [](const OwnFiller& own) { return own.requests_per_s; })}};
}

Json confirmation_json(const Found& found) {
  const Confirmation& confirmed = found.confirmed;
  const TrialResult mean =
      found.best ? mean_over_seeds(found.best->result, confirmed) : TrialResult{};
  return {{"seeds", list_json(confirmed.seeds, result_json)},
          {"random", confirmed.random},
          {"longer_windows", list_json(confirmed.windows, result_json)},
          {"mean_gpus_worth", mean.gain},
          {"mean_requests_per_s", mean.requests_per_s},
          {"broke", confirmed.broke},
          {"expected_break_rate", break_rate(confirmed)},
          {"training_slower_5_percent", list_json(confirmed.slower, result_json)},
          {"training_faster_5_percent", list_json(confirmed.faster, result_json)}};
}

Json error_json(const KnownError& error) {
  return {{"device", error.device},
          {"here", error.same_device},
          {"figure", error.figure},
          {"error_percent", error.error_percent},
          {"table", error.source}};
}

Json practice_json(const Practice& practice) {
  return {{"step", practice.word},
          {"command", practice.command.empty() ? Json(nullptr) : Json(practice.command)},
          {"note", practice.note}};
}

Json part_json(const AnswerPart& part) {
  return {{"title", part.title}, {"lines", list_json(part.lines, [](const AnswerLine& line) {
                                    return Json::array({line.word, line.text});
                                  })}};
}

Json looser_json(const Advice& advice) {
  return list_json(advice.found.looser, [&](const Looser& looser) -> Json {
    return {{"limit", looser.limit}, {"setting", tried_json(looser.tried, advice.question.limits)}};
  });
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
          {"measured_errors", list_json(advice.errors, error_json)},
          {"runner_up", maybe(found.runner_up, limits)},
          {"least_beyond_limits", maybe(found.least, limits)},
          {"would_need", found.least ? Json(needed_limits(found.least->result, limits))
                                     : Json(nullptr)},
          {"gains_gpus", balance.gains},
          {"costs_gpus", balance.costs},
          {"unfilled", list_json(advice.unfilled, share_json)},
          {"with_looser_limits", looser_json(advice)},
          {"out_of_reach", list_of(found.out_of_reach, limits)},
          {"with_memory",
           advice.with_memory ? result_json(*advice.with_memory) : Json(nullptr)},
          {"practice", list_json(practice_of(advice, config), practice_json)},
          {"text", list_json(answer_parts(advice, config), part_json)},
          {"search", effort_json(advice)},
          {"tried", list_of(found.all, limits)}};
}

namespace {

constexpr double kLooserKeep = 0.03;    // less of training
constexpr double kLooserLatency = 2;    // times as long
constexpr double kGainsMore = 0.006;    // more than what counts as equal
constexpr double kKeptAsMuch = 0.0005;  // of training

double best_gain(const Advice& advice) {
  return advice.found.best ? advice.found.best->result.gain : 0;
}

/// Four digits: a limit that a figure is said to keep must not be above it.
double rounded_down(double share) { return std::floor(share * 1e4) / 1e4; }

std::string latency_limits_text(const Limits& limits) {
  std::string text;
  for (const LimitedLatency& latency : latencies_of({}, limits)) {
    if (!latency.limit) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", latency.name,
                        milliseconds(*latency.limit));
  }
  return text;
}

std::string too_long(const TrialResult& result, const Limits& limits) {
  std::string text;
  for (const LimitedLatency& latency : latencies_of(result, limits)) {
    if (!latency.is_broken()) continue;
    text += fmt::format("{}its {} is {}", text.empty() ? "" : ", ", latency.words,
                        milliseconds(*latency.found));
  }
  return text;
}

}  // namespace

std::string milliseconds(Duration span) { return fmt::format("{:.3g} ms", to_seconds(span) * 1e3); }

std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits) {
  if (violation(lost.result, limits) > 0) {
    if (lost.result.overloaded) return "it is overloaded";
    if (lost.result.kept < limits.keep) {
      return fmt::format("it keeps {:.4f} of training, {:.4f} below the limit", lost.result.kept,
                         limits.keep - lost.result.kept);
    }
    return lost.result.refused ? "it turns requests away" : too_long(lost.result, limits);
  }
  if (lost.result.gain > best.result.gain * (1 + kGainsMore)) return "other seeds broke a limit";
  const double less = best.result.gain > 0 ? 1 - lost.result.gain / best.result.gain : 0;
  if (less > 0.005) {
    return fmt::format("it gains {:.0f} % less and keeps {:.4f} of training", 100 * less,
                       lost.result.kept);
  }
  if (std::abs(lost.result.kept - best.result.kept) < kKeptAsMuch) {
    return "it gains and keeps as much, and demands as much or more";
  }
  return fmt::format("it gains as much and keeps {:.4f} of training, not {:.4f}", lost.result.kept,
                     best.result.kept);
}

std::vector<std::pair<std::string, Limits>> looser_limits(const Limits& limits) {
  std::vector<std::pair<std::string, Limits>> all;
  if (limits.keep > kLooserKeep) {
    Limits less = limits;
    less.keep = std::round((limits.keep - kLooserKeep) * 1e6) / 1e6;
    all.emplace_back(fmt::format("keep {:g}", less.keep), less);
  }
  const Limits longer = with_latencies_scaled(limits, kLooserLatency);
  if (const std::string text = latency_limits_text(longer); !text.empty()) {
    all.emplace_back(text, longer);
  }
  return all;
}

std::string needed_limits(const TrialResult& result, const Limits& limits) {
  std::string text;
  const auto add = [&text](const std::string& limit) {
    text += (text.empty() ? "" : ", ") + limit;
  };
  if (result.kept < limits.keep) add(fmt::format("keep {:.4f}", rounded_down(result.kept)));
  if (result.refused) add("requests turned away");
  if (result.overloaded) {
    add(fmt::format("a load below {:.3g} requests/s, of {:.3g} that are offered",
                    result.requests_per_s, result.offered_per_s));
    return text;
  }
  for (const LimitedLatency& latency : latencies_of(result, limits)) {
    if (latency.is_broken()) add(latency.name + (" " + milliseconds(*latency.found)));
  }
  return text;
}

std::string broken_limits(const TrialResult& result, const Limits& limits) {
  std::string text;
  const auto add = [&text](bool broken, const char* name) {
    if (broken) text += (text.empty() ? "breaks " : ", ") + std::string(name);
  };
  add(result.kept < limits.keep, "keep");
  add(result.refused, "no request may be turned away");
  add(result.overloaded, "all requests must be served");
  if (result.overloaded) return text;
  for (const LimitedLatency& latency : latencies_of(result, limits)) {
    add(latency.is_broken(), latency.name);
  }
  return text;
}

std::vector<Tried> worth_having(const Advice& advice) {
  std::vector<Tried> out;
  for (const Tried& other : advice.found.out_of_reach) {
    const bool keeps = violation(other.result, advice.question.limits) <= 0;
    if (keeps && other.result.gain > best_gain(advice) * kWorthTelling) out.push_back(other);
  }
  return out;
}

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

namespace {

constexpr std::array<std::string_view, 5> kColumns{"policy", "device", "figure", "error_percent",
                                                   "table"};

/// The name in the device's file; empty: it has none.
std::string device_name(const std::string& config_folder, const std::string& id) {
  const auto text = read_text_file(config_folder + "/devices/" + id + ".json");
  const Json file = Json::parse(text.value_or("{}"), nullptr, false);
  const Json* name = sweep::find_value(file, "/name/value");
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                    const std::string& policy,
                                                    const std::string& device) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto table,
                             CsvTable::read(config_folder + "/validation/errors.csv"));
  BUBBLESIM_RETURN_IF_ERROR(table.expect(kColumns));
  std::vector<KnownError> errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "policy") != policy) continue;
    const auto percent = table.figure(row, "error_percent");
    if (!percent) {
      return tl::make_unexpected(table.fault(row, "error_percent", "a number").value());
    }
    const std::string measured(table.text(row, "device"));
    errors.push_back({policy, measured, std::string(table.text(row, "figure")), *percent,
                      std::string(table.text(row, "table")),
                      device_name(config_folder, measured) == device});
  }
  return errors;
}

}  // namespace bubblesim::advise
