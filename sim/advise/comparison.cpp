#include "sim/advise/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

constexpr double kLooserKeep = 0.03;    // less of training
constexpr double kLooserLatency = 2;    // times as long
constexpr double kWorthTelling = 1.05;  // times the gain
constexpr double kGainsMore = 0.006;    // more than what counts as equal
constexpr int kTriedFor = 3;            // a third of the full length: what is told of settings
constexpr double kKeptAsMuch = 0.0005;  // of training

double best_gain(const Advice& advice) {
  return advice.found.best ? advice.found.best->result.gain : 0;
}

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

std::vector<std::pair<std::string, Limits>> looser(const Limits& limits) {
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

std::vector<Looser> with_looser_limits(const Advice& advice) {
  std::vector<Looser> out;
  for (const auto& [text, limits] : looser(advice.question.limits)) {
    const Tried* most = nullptr;
    for (const Tried& tried : advice.found.all) {
      const bool real = tried.result.done && tried.available &&
                        tried.length >= advice.found.length / kTriedFor &&
                        violation(tried.result, advice.question.limits) > 0 &&
                        violation(tried.result, limits) <= 0;
      if (real && (most == nullptr || is_better(tried.result, most->result, limits))) most = &tried;
    }
    if (most != nullptr && most->result.gain > best_gain(advice) * kWorthTelling) {
      out.push_back({text, *most});
    }
  }
  return out;
}

std::vector<Tried> worth_having(const Advice& advice) {
  std::vector<Tried> out;
  for (const Tried& other : advice.found.out_of_reach) {
    const bool keeps = violation(other.result, advice.question.limits) <= 0;
    if (keeps && other.result.gain > best_gain(advice) * kWorthTelling) out.push_back(other);
  }
  return out;
}

}  // namespace bubblesim::advise
