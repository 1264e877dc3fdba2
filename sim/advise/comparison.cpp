#include "sim/advise/comparison.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "sim/advise/answer_parts.hpp"
#include "sim/base/csv_table.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::advise {
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
  const auto add = [&text](const char* name, std::optional<Duration> limit) {
    if (limit) text += (text.empty() ? "" : ", ") + std::string(name) + " " + milliseconds(*limit);
  };
  add("p95", limits.p95);
  add("ttft", limits.slo.ttft);
  add("tpot", limits.slo.tpot);
  return text;
}

std::string too_long(const TrialResult& result, const Limits& limits) {
  std::string text;
  const auto add = [&text](const char* name, std::optional<Duration> limit,
                           std::optional<Duration> found) {
    if (!limit || !found || *found <= *limit) return;
    text += fmt::format("{}its {} is {}", text.empty() ? "" : ", ", name, milliseconds(*found));
  };
  add("p95", limits.p95, result.p95);
  add("p95 to the first token", limits.slo.ttft, result.tokens.ttft);
  add("p95 of time a token", limits.slo.tpot, result.tokens.tpot);
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
  const auto add_latency = [&add](const char* name, std::optional<Duration> limit,
                                  std::optional<Duration> found) {
    if (limit && found && *found > *limit) add(name + std::string(" ") + milliseconds(*found));
  };
  if (result.kept < limits.keep) add(fmt::format("keep {:.4f}", rounded_down(result.kept)));
  if (result.refused) add("requests turned away");
  if (result.overloaded) {
    add(fmt::format("a load below {:.3g} requests/s, of {:.3g} that are offered",
                    result.requests_per_s, result.offered_per_s));
    return text;
  }
  add_latency("p95", limits.p95, result.p95);
  add_latency("ttft", limits.slo.ttft, result.tokens.ttft);
  add_latency("tpot", limits.slo.tpot, result.tokens.tpot);
  return text;
}

std::string broken_limits(const TrialResult& result, const Limits& limits) {
  std::string text;
  const auto add = [&text](bool broken, const char* name) {
    if (broken) text += (text.empty() ? "breaks " : ", ") + std::string(name);
  };
  const auto is_longer = [](std::optional<Duration> found, std::optional<Duration> limit) {
    return found && limit && *found > *limit;
  };
  add(result.kept < limits.keep, "keep");
  add(result.refused, "no request may be turned away");
  add(result.overloaded, "all requests must be served");
  if (result.overloaded) return text;
  add(is_longer(result.p95, limits.p95), "p95");
  add(is_longer(result.tokens.ttft, limits.slo.ttft), "ttft");
  add(is_longer(result.tokens.tpot, limits.slo.tpot), "tpot");
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

/// Of the device's file; empty: it has none.
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
