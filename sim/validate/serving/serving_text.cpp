#include "sim/validate/serving/serving_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/counter_text.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

std::string percent(double share) { return fmt::format("{:+.2f} %", 100 * share); }

std::string figures_text(const JudgedBundle& bundle) {
  TextTable table({"figure", "measured, ms", "simulated, ms", "error"}, {Align::kLeft});
  for (const ServingFigure& figure : bundle.figures) {
    table.row({figure.name, fmt::format("{:.2f}", figure.measured),
               fmt::format("{:.2f}", figure.simulated), percent(figure.error())});
  }
  return table.text();
}

std::string summary_of_bundle(const JudgedBundle& bundle) {
  std::string text = fmt::format("  mean |error| {:.2f} %, worst {} ({})",
                                 100 * bundle.errors.mean_absolute, percent(bundle.errors.worst),
                                 bundle.errors.worst_label);
  if (bundle.peer) {
    text += fmt::format("; {}: {:.1f} %", bundle.peer->name, 100 * bundle.peer->mean);
  }
  const serving::SchedulerCounts& counts = bundle.load.counts;
  text += fmt::format("\n  {} requests, {} steps, {} preemptions", bundle.requests.size(),
                      bundle.load.steps, counts.preemptions);
  if (counts.prefix_hit_tokens > 0) {
    text += fmt::format(", {} tokens of prompts were in the cache", counts.prefix_hit_tokens);
  }
  return text + "\n" + counter_notes(bundle.counters);
}

void append_times(std::string& line, const RequestLatencies& times) {
  line += fmt::format(",{:.3f},", times.ttft);
  if (times.tpot) line += fmt::format("{:.3f}", *times.tpot);
  line += fmt::format(",{:.3f}", times.latency);
}

}  // namespace

std::string serving_text(const std::vector<JudgedBundle>& bundles, bool figures) {
  std::string text;
  for (const JudgedBundle& bundle : bundles) {
    text += (text.empty() ? "" : "\n") + bundle.label + " on " + bundle.gpu + ", step times: " +
            bundle.costs + "\n";
    if (figures) text += figures_text(bundle);
    text += summary_of_bundle(bundle);
  }
  return text;
}

std::string serving_figures_csv(const std::vector<JudgedBundle>& bundles) {
  std::string text = "bundle,figure,measured_ms,simulated_ms,error_percent\n";
  for (const JudgedBundle& bundle : bundles) {
    for (const ServingFigure& figure : bundle.figures) {
      append_csv_cell(text, bundle.label);
      text += fmt::format(",{},{:.4f},{:.4f},{:.4f}\n", figure.name, figure.measured,
                          figure.simulated, 100 * figure.error());
    }
  }
  return text;
}

std::string serving_requests_csv(const std::vector<JudgedBundle>& bundles) {
  std::string text =
      "bundle,request,queued_s,preemptions,measured_ttft_ms,measured_tpot_ms,measured_latency_ms,"
      "simulated_ttft_ms,simulated_tpot_ms,simulated_latency_ms\n";
  for (const JudgedBundle& bundle : bundles) {
    for (const JudgedRequest& request : bundle.requests) {
      append_csv_cell(text, bundle.label);
      text += ',';
      append_csv_cell(text, request.id);
      text += fmt::format(",{:.6f},{}", request.queued_s, request.preemptions);
      append_times(text, request.measured);
      append_times(text, request.simulated);
      text += '\n';
    }
  }
  return text;
}

Json serving_json(const std::vector<JudgedBundle>& bundles) {
  Json list = Json::array();
  for (const JudgedBundle& bundle : bundles) {
    Json figures = Json::array();
    for (const ServingFigure& figure : bundle.figures) {
      figures.push_back({{"figure", figure.name},
                         {"measured_ms", figure.measured},
                         {"simulated_ms", figure.simulated},
                         {"error_percent", 100 * figure.error()}});
    }
    Json peer = nullptr;
    if (bundle.peer) {
      peer = {{"name", bundle.peer->name},
              {"mean_absolute_error_percent", 100 * bundle.peer->mean}};
    }
    list.push_back({{"bundle", bundle.label},
                    {"gpu", bundle.gpu},
                    {"step_times", bundle.costs},
                    {"figures", std::move(figures)},
                    {"mean_absolute_error_percent", 100 * bundle.errors.mean_absolute},
                    {"bias_percent", 100 * bundle.errors.bias},
                    {"worst_error_percent", 100 * bundle.errors.worst},
                    {"worst_figure", bundle.errors.worst_label},
                    {"peer", std::move(peer)},
                    {"requests", bundle.requests.size()},
                    {"steps", bundle.load.steps},
                    {"preemptions", bundle.load.counts.preemptions},
                    {"prefix_hit_tokens", bundle.load.counts.prefix_hit_tokens},
                    {"counters", counters_object(bundle.counters)}});
  }
  return {{"format", "bubblesim.validate_serving/1"}, {"bundles", std::move(list)}};
}

}  // namespace bubblesim::validate
