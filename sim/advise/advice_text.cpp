#include "sim/advise/advice_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

constexpr double kLooserKeep = 0.03;   // less of training
constexpr double kLooserLatency = 2;   // times as long
constexpr double kWorthTelling = 1.05; // times the gain

std::string milliseconds(Duration span) { return fmt::format("{:.3g} ms", to_seconds(span) * 1e3); }

std::string features_text(const std::vector<policy::SystemFeature>& features) {
  std::string text;
  for (const policy::SystemFeature feature : features) {
    text += (text.empty() ? "" : ", ") + std::string(policy::feature_word(feature));
  }
  return text.empty() ? "nothing" : text;
}

/// Gains are of the simulated GPUs; the whole job has so many for each.
double whole(const Advice& advice, double gain) { return gain * advice.alone.gpus_each; }

std::string gain_text(const Advice& advice, const TrialResult& result) {
  return fmt::format("{:.4g} requests/s, worth {:.3g} GPUs", whole(advice, result.requests_per_s),
                     whole(advice, result.gain));
}

std::string latency_of(const TrialResult& result) {
  if (result.overloaded) return ", overloaded";
  return result.p95 ? ", p95 " + milliseconds(*result.p95) : "";
}

std::string line_of(const Advice& advice, const Tried& tried) {
  return fmt::format("{}: {}, training keeps {:.3f}{}", proposal_text(tried.proposal),
                     gain_text(advice, tried.result), tried.result.kept,
                     latency_of(tried.result));
}

std::string alone_text(const Advice& advice) {
  const JobAlone& alone = advice.alone;
  std::string causes;
  for (const CauseShare& cause : alone.causes) {
    causes += fmt::format("{}{} {:.1f} %", causes.empty() ? "" : ", ", cause.cause,
                          100 * cause.share);
  }
  std::string text = fmt::format(
      "{}: {} an iteration alone on {} x {}; bubbles {:.1f} % of the time ({})\n",
      advice.question.name, milliseconds(alone.iteration), alone.gpus * alone.gpus_each,
      alone.device, 100 * alone.bubble, causes);
  for (const Tried& bound : advice.found.bounds) {
    text += fmt::format("  {} (oracle) would gain {}\n",
                        bound.proposal.policy->name, gain_text(advice, bound.result));
  }
  return text;
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

std::string margin_text(const Advice& advice, const TrialResult& result) {
  const Limits& limits = advice.question.limits;
  std::string text = fmt::format("  costs    {:.2f} % of training: keeps {:.4f}, limit {:g}\n",
                                 100 * (1 - result.kept), result.kept, limits.keep);
  if (result.p95) {
    text += "  p95      " + milliseconds(*result.p95);
    if (limits.p95) {
      text += fmt::format(", limit {}: {:.0f} % of it left", milliseconds(*limits.p95),
                          100 * (1 - to_seconds(*result.p95) / to_seconds(*limits.p95)));
    }
    text += "\n";
  }
  return text;
}

std::string varied_text(const std::vector<TrialResult>& results, const std::string& what) {
  if (results.empty()) return "";
  const TrialResult& result = results.front();
  return fmt::format("           {}: gains {:.3g}, keeps {:.4f}{}\n", what, result.gain,
                     result.kept, latency_of(result));
}

std::string sure_text(const Advice& advice) {
  const Confirmation& confirmed = advice.found.confirmed;
  const std::size_t seeds = confirmed.seeds.size();
  if (seeds == 0) return "  sure     not confirmed: stopped\n";
  double least = 1;
  Duration longest{};
  for (const TrialResult& result : confirmed.seeds) {
    least = std::min(least, result.kept);
    longest = std::max(longest, result.p95.value_or(Duration{}));
  }
  std::string text = fmt::format(
      "  sure     {} of {} other seeds break a limit (expect up to {:.0f} %); least kept "
      "{:.4f}{}\n",
      confirmed.broke, seeds, 100 * break_rate(confirmed), least,
      longest > Duration{} ? ", longest p95 " + milliseconds(longest) : "");
  text += varied_text(confirmed.slower, "durations of training 5 % longer");
  text += varied_text(confirmed.faster, "durations of training 5 % shorter");
  std::string errors;
  for (const KnownError& error : advice.errors) {
    errors += fmt::format("{}{} {:g} % ({})", errors.empty() ? "" : ", ", error.figure,
                          error.percent, error.device);
  }
  return text + "           measured error of the simulator under this policy: " +
         (errors.empty() ? "never measured" : errors) + "\n";
}

std::string recommendation_text(const Advice& advice) {
  const Tried& best = *advice.found.best;
  if (best.result.gain <= 0) {
    return "Leave it alone: nothing that was tried gains anything within the limits.\n";
  }
  std::string text = fmt::format("Run {}\n  needs    {}\n  gains    {}",
                                 proposal_text(best.proposal),
                                 features_text(demanded(best.proposal)),
                                 gain_text(advice, best.result));
  text += shares_of_bounds(advice, best.result);
  text += "\n" + margin_text(advice, best.result) + sure_text(advice);
  if (advice.found.runner_up) {
    const Tried& second = *advice.found.runner_up;
    text += fmt::format("Runner-up {}: {}\n", proposal_text(second.proposal),
                        why_it_lost(second, best, advice.question.limits));
  }
  return text;
}

std::string nothing_text(const Advice& advice) {
  std::string text = "Nothing that was tried keeps the limits.\n";
  if (!advice.found.least) return text;
  const Tried& least = *advice.found.least;
  return text + fmt::format("  Nearest, {:.1f} % beyond: {}\n",
                            100 * violation(least.result, advice.question.limits),
                            line_of(advice, least));
}

std::string in_the_way_text(const Advice& advice) {
  std::string text;
  for (const CauseShare& cause : advice.unfilled) {
    if (cause.share < 0.0005) continue;
    text += fmt::format("  bubbles of cause {}: {:.1f} % of the time, {:.0f} % of them filled\n",
                        cause.cause, 100 * cause.share, 100 * cause.filled / cause.share);
  }
  for (const Looser& looser : with_looser_limits(advice)) {
    text += fmt::format("  with {}: {}\n", looser.limit, line_of(advice, looser.tried));
  }
  const double best = advice.found.best ? advice.found.best->result.gain : 0;
  for (const Tried& other : advice.found.out_of_reach) {
    const bool keeps = violation(other.result, advice.question.limits) <= 0;
    if (!keeps || other.result.gain <= best * kWorthTelling) continue;
    text += fmt::format("  with {}: {}\n", features_text(demanded(other.proposal)),
                        line_of(advice, other));
  }
  return text.empty() ? text : "In the way of more\n" + text;
}

std::string effort_text(const Advice& advice) {
  const Found& found = advice.found;
  return fmt::format("{} settings, {} trials, the longest {} simulated{}; {} runs now, {} stored "
                     "before\n",
                     found.all.size(), found.trials, format_duration(found.length),
                     found.shortened ? " (a larger --budget allows more)" : "", advice.simulated,
                     advice.stored);
}

}  // namespace

std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits) {
  if (violation(lost.result, limits) > 0) {
    if (lost.result.overloaded) return "it is overloaded";
    if (lost.result.kept < limits.keep) {
      return fmt::format("it keeps {:.4f} of training, {:.4f} below the limit", lost.result.kept,
                         limits.keep - lost.result.kept);
    }
    return fmt::format("its p95 is {}", milliseconds(lost.result.p95.value_or(Duration{})));
  }
  if (is_better(lost.result, best.result, limits)) return "other seeds broke a limit";
  const double less = best.result.gain > 0 ? 1 - lost.result.gain / best.result.gain : 0;
  if (less > 0.005) {
    return fmt::format("it gains {:.3g} GPUs' worth, {:.0f} % less, and keeps {:.4f}",
                       lost.result.gain, 100 * less, lost.result.kept);
  }
  return fmt::format("it gains as much and keeps {:.4f} of training, not {:.4f}", lost.result.kept,
                     best.result.kept);
}

std::vector<Looser> with_looser_limits(const Advice& advice) {
  std::vector<std::pair<std::string, Limits>> all;
  const Limits& limits = advice.question.limits;
  if (limits.keep > kLooserKeep) {
    const double keep = std::round((limits.keep - kLooserKeep) * 1e6) / 1e6;
    all.push_back({fmt::format("keep {:g}", keep), {keep, limits.p95}});
  }
  if (limits.p95) {
    const Duration p95{std::llround(static_cast<double>(limits.p95->count()) * kLooserLatency)};
    all.push_back({"p95 " + milliseconds(p95), {limits.keep, p95}});
  }
  const double best = advice.found.best ? advice.found.best->result.gain : 0;
  std::vector<Looser> out;
  for (const auto& [text, looser] : all) {
    const Tried* most = nullptr;
    for (const Tried& tried : advice.found.all) {
      const bool real = tried.result.done && tried.available &&
                        violation(tried.result, looser) <= 0;
      if (real && (most == nullptr || is_better(tried.result, most->result, looser))) most = &tried;
    }
    if (most != nullptr && most->result.gain > best * kWorthTelling) out.push_back({text, *most});
  }
  return out;
}

std::vector<std::string> commands(const Advice& advice, const std::string& config) {
  if (!advice.found.best || advice.found.best->result.gain <= 0) return {};
  const Proposal& best = advice.found.best->proposal;
  std::string fill = "bubblesim fill --policy " + best.policy->name;
  for (const auto& [name, value] : best.parameters) {
    fill += " --set " + name + "=" + policy::value_text(value);
  }
  if (advice.found.best->result.p95) fill += " --filler-role online";
  return {"bubblesim run " + config, "bubblesim measure " + config,
          fill + " --train 'TRAINING COMMAND' --fill 'FILLER COMMAND'"};
}

std::string advice_text(const Advice& advice, const std::string& config) {
  std::string text = alone_text(advice) + "\n";
  text += advice.found.best ? recommendation_text(advice) : nothing_text(advice);
  text += in_the_way_text(advice);
  const auto lines = commands(advice, config);
  if (!lines.empty()) text += "Do it\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + "\n" + effort_text(advice);
}

}  // namespace bubblesim::advise
