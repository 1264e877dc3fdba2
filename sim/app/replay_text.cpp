#include "sim/app/replay_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/text/counter_text.hpp"
#include "sim/text/text_table.hpp"
#include "sim/workload/build_counters.hpp"
#include "traces/inferred_layout.hpp"
#include "traces/iterations/before_window.hpp"
#include "traces/iterations/start_skew.hpp"

namespace bubblesim::app {
namespace {

using workload::RankReplay;
using workload::ReplayReport;

double mean_ms(const std::vector<Duration>& times) {
  const Duration total = std::accumulate(times.begin(), times.end(), Duration{});
  return times.empty() ? 0 : 1e3 * to_seconds(total) / static_cast<double>(times.size());
}

double change_percent(double now, double before) {
  return before == 0 ? 0 : 100 * (now / before - 1);
}

std::vector<std::int64_t> nanoseconds(const std::vector<Duration>& times) {
  std::vector<std::int64_t> values;
  for (const Duration time : times) values.push_back(to_ns(time));
  return values;
}

enum class Recorded : std::uint8_t { kNo, kYes };

/// A layout that an importer inferred is no recorded time to err from.
Recorded recorded_in(const ReplayComparison& comparison) {
  const bool inferred = comparison.counters.count(traces::kLayoutInferred.name) > 0;
  return inferred ? Recorded::kNo : Recorded::kYes;
}

Json to_json(const ReplayReport& report, Recorded recorded) {
  const auto if_recorded = [recorded](Json value) {
    return recorded == Recorded::kYes ? std::move(value) : Json(nullptr);
  };
  Json ranks = Json::array();
  for (const RankReplay& rank : report.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"recorded_iterations_ns", if_recorded(nanoseconds(rank.recorded))},
                     {"simulated_iterations_ns", nanoseconds(rank.simulated)},
                     {"recorded_span_ns", if_recorded(to_ns(rank.recorded_span))},
                     {"simulated_span_ns", to_ns(rank.simulated_span)},
                     {"mean_error", if_recorded(rank.mean_error())},
                     {"span_error", if_recorded(rank.span_error())}});
  }
  return {{"mean_error", if_recorded(report.mean_error())},
          {"worst_error", if_recorded(report.worst_error())},
          {"device_ops", report.device_ops},
          {"events", report.events},
          {"ranks", std::move(ranks)}};
}

/// Below this share of operations without a launch the error is one of the recording's making.
constexpr double kTellingShare = 0.01;

/// Of operations whose launch is not known the replay has nothing but the gaps that were recorded:
/// it meets their times whatever the model does. Empty: they are few.
std::string doubt(const ReplayComparison& comparison) {
  const std::uint64_t orphans = comparison.counters.count(workload::kOrphanOps.name);
  const auto all = static_cast<double>(comparison.unchanged.device_ops);
  if (all == 0 || static_cast<double>(orphans) < kTellingShare * all) return {};
  const double share = static_cast<double>(orphans) / all;
  return fmt::format("{}: {:.3g} % of operations have no launch call, and start when they were "
                     "recorded",
                     share < 0.5 ? "a check of the rest only" : "not a check", 100 * share);
}

constexpr const char* kNotMet =
    "the replay does not meet the recording: times of the trace contradict its launches and waits, "
    "or it lacks some; runs of it must not be trusted";

/// Empty: what-ifs are not doubtful.
std::string doubt_of_changes(const ReplayComparison& comparison) {
  if (comparison.counters.count(workload::kDoubtful.name) == 0) return {};
  return "! doubtful: nothing recorded explains over 10 % of the iteration's time, and what starts "
         "or waits\nwere held by then does not move\n";
}

/// Empty: the change is done whole.
std::string clamped_spans(const ChangedReplay& changed) {
  if (changed.spans_clamped == 0) return {};
  return fmt::format("! changed less than asked for: {} spans of the host would last over 4.29 s, "
                     "and are shortened\nto that\n",
                     changed.spans_clamped);
}

std::string decimals(double value) { return fmt::format("{:.3f}", value); }

/// Of a recording whose beginning is in no iteration; empty: all of it is.
std::string length_of_cut(const ReplayComparison& comparison) {
  if (comparison.counters.count(traces::kQueueCut.name) == 0) return {};
  Duration longest{};
  for (const RankReplay& rank : comparison.whole.ranks) {
    longest = std::max(longest, rank.recorded_span);
  }
  return fmt::format("recorded_ms is without what was queued before the recording, which takes {} "
                     "ms in all\n",
                     decimals(1e3 * to_seconds(longest)));
}

/// Empty: no rank's time may be waiting for one that began later.
std::string start_skew(const ReplayComparison& comparison) {
  if (comparison.counters.count(traces::kStartSkewUnknown.name) == 0) return {};
  return "! recorded_ms may hold waiting for ranks that began the first iteration later\n";
}

std::string comparison_table(const ReplayComparison& comparison) {
  std::string out =
      "replay alone: the iterations used, repeated, against the recorded time of one; the whole\n"
      "recording once, against its span\n";
  TextTable table({"rank", "iters", "recorded_ms", "simulated_ms", "error_%", "span_err_%"}, {});
  const std::string skew = start_skew(comparison);
  for (std::size_t i = 0; i < comparison.unchanged.ranks.size(); ++i) {
    const RankReplay& rank = comparison.unchanged.ranks[i];
    table.row({fmt::to_string(rank.rank), fmt::to_string(comparison.iterations_used),
               decimals(mean_ms(rank.recorded)) + (skew.empty() ? "" : " !"),
               decimals(mean_ms(rank.simulated)),
               decimals(100 * rank.mean_error()),
               decimals(100 * comparison.whole.ranks[i].span_error())});
  }
  out += table.text();
  out += fmt::format("mean error {:.3f} %, worst rank {:.3f} %",
                     100 * comparison.unchanged.mean_error(),
                     100 * comparison.unchanged.worst_error());
  const std::string why_not = doubt(comparison);
  if (!why_not.empty()) out += "; " + why_not;
  out += meets_recording(comparison) ? "\n" : fmt::format(" !\n! {}\n", kNotMet);
  return out + length_of_cut(comparison) + skew;
}

std::string simulated_table(const ReplayComparison& comparison) {
  std::string out =
      "replay alone: the iterations used, repeated; the trace records no starts to compare with\n";
  TextTable table({"rank", "iters", "simulated_ms"}, {});
  for (const RankReplay& rank : comparison.unchanged.ranks) {
    table.row({fmt::to_string(rank.rank), fmt::to_string(comparison.iterations_used),
               decimals(mean_ms(rank.simulated))});
  }
  return out + table.text();
}

}  // namespace

bool meets_recording(const ReplayComparison& comparison) {
  constexpr double kMostError = 0.01;  // of a rank's mean iteration
  return recorded_in(comparison) == Recorded::kNo ||
         comparison.unchanged.worst_error() <= kMostError;
}

std::string replay_text(const ReplayComparison& comparison) {
  std::string out = loss_lines(comparison.counters);
  out += "iterations: " + comparison.iterations_text + "\n";
  out += recorded_in(comparison) == Recorded::kYes ? comparison_table(comparison)
                                                   : simulated_table(comparison);
  for (const ChangedReplay& changed : comparison.changes) {
    const std::string doubt = doubt_of_changes(comparison) + clamped_spans(changed);
    out += fmt::format("\nwhat if {}: change of the mean iteration time\n", changed.change);
    TextTable table({"rank", "before_ms", "now_ms", "change_%"}, {});
    for (std::size_t i = 0; i < changed.report.ranks.size(); ++i) {
      const double before = mean_ms(comparison.unchanged.ranks[i].simulated);
      const double now = mean_ms(changed.report.ranks[i].simulated);
      table.row({fmt::to_string(changed.report.ranks[i].rank), decimals(before), decimals(now),
                 fmt::format("{:+.2f}{}", change_percent(now, before), doubt.empty() ? "" : " !")});
    }
    out += table.text() + doubt;
  }
  out += "\n";
  return out + counter_lines(comparison.counters);
}

std::string replay_json(const ReplayComparison& comparison) {
  const Recorded recorded = recorded_in(comparison);
  Json changes = Json::array();
  const bool doubtful = !doubt_of_changes(comparison).empty();
  for (const ChangedReplay& changed : comparison.changes) {
    changes.push_back({{"what_if", changed.change},
                       {"doubtful", doubtful},
                       {"spans_clamped", changed.spans_clamped},
                       {"replay", to_json(changed.report, recorded)}});
  }
  Json replay = to_json(comparison.unchanged, recorded);
  replay["ops_without_launch"] = comparison.counters.count(workload::kOrphanOps.name);
  const std::string why_not = meets_recording(comparison) ? doubt(comparison) : kNotMet;
  replay["doubt"] = why_not.empty() ? Json(nullptr) : Json(why_not);
  const Json document = {{"iterations_recorded", comparison.iterations_recorded},
                         {"iterations_used", comparison.iterations_used},
                         {"iterations_reason", comparison.iterations_text},
                         {"replay", std::move(replay)},
                         {"whole", to_json(comparison.whole, recorded)},
                         {"what_if", std::move(changes)},
                         {"counters", counts_object(comparison.counters)}};
  return indented_text(document, 1) + "\n";
}

}  // namespace bubblesim::app
