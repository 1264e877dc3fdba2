#include "sim/report/report_page.hpp"

#include <bubblesim_report_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/report/page_parts.hpp"
#include "sim/store/store_export.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::report {

std::string report_page(const ReportData& data) {
  return filled_page(report_page_files::kPage,
                     {{"title", markup_text(data.title)}, {"data", report_json(data)}});
}

// The data of a page as JSON: lists in place of objects where there are thousands, so that a page
// stays small. page/data.js reads it.

namespace {

/// With six digits: what is drawn and printed needs no more.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  const double rounded = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) {
    return static_cast<std::int64_t>(rounded);
  }
  return rounded;
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

Json settings_json(const std::vector<store::Setting>& settings) {
  return list_json(settings, [](const store::Setting& setting) -> Json {
    return {setting.pointer, store::setting_text(setting.value)};
  });
}

/// [mean, half width, seeds, lower bounds, overloaded], the mean alone for one seed that is exact.
Json value_json(const ReportValue& value) {
  if (!value.mean) return nullptr;
  if (value.seeds == 1 && value.lower_bounds + value.overloaded == 0) return number(*value.mean);
  return Json::array({number(value.mean), number(value.half_width), value.seeds,
                      value.lower_bounds, value.overloaded});
}

Json point_json(const ReportPoint& point) {
  Json by_run = Json::array();
  for (const auto& run : point.by_run) {
    if (point.by_run.size() < 2) break;
    Json& values = by_run.emplace_back(Json::array());
    for (const auto& value : run) values.push_back(number(value));
  }
  return Json::array({point.sweep, point.policy, point.filler, point.values, point.runs,
                      list_json(point.figures, value_json), std::move(by_run), point.losses});
}

Json run_json(const ReportRun& run) {
  // Numbers of 64 bits as texts: a script's numbers have 53.
  return Json::array({run.key, run.sweep, run.index, std::to_string(run.seed), run.host,
                      run.version, run.device, run.finished_unix_ns / 1'000'000'000,
                      number(run.cpu_s),
                      run.patch ? Json::parse(*run.patch, nullptr, false) : Json(),
                      run.counters});
}

Json axis_json(const ReportAxis& axis) {
  return {{"pointer", axis.pointer},
          {"unit", axis.unit},
          {"values", list_json(axis.values, store::setting_text)},
          {"numbers", list_json(axis.numbers, [](double value) { return number(value); })},
          {"choices", axis.choices},
          {"choiceOf", axis.choice_of}};
}

Json comparison_json(const ReportComparison& comparison) {
  const store::PolicyComparison& line = comparison.line;
  return Json::array({line.metric, line.filler, line.policy, comparison.values, line.pairs,
                      number(line.mean), number(line.baseline_mean), number(line.difference),
                      number(line.half_width), line.unpaired, line.lower_bounds,
                      line.overloaded, line.losses});
}

Json sweep_json(const ReportSweep& sweep) {
  Json fronts = list_json(sweep.fronts, [](const ReportFront& front) {
    return Json::array({front.filler, front.trade, front.choices, front.points});
  });
  Json curves = list_json(sweep.curves, [](const ReportCurve& curve) {
    return Json::array({curve.filler, curve.policy, curve.axis, curve.points});
  });
  Json base = Json::parse(sweep.base_config, nullptr, false);
  if (base.is_discarded()) base = sweep.base_config;
  return {{"name", sweep.name},
          {"axes", list_json(sweep.axes, axis_json)},
          {"labels", sweep.labels},
          {"fronts", std::move(fronts)},
          {"frontsLeftOut", sweep.fronts_left_out},
          {"curves", std::move(curves)},
          {"baseline", sweep.baseline},
          {"comparisons", list_json(sweep.comparisons, comparison_json)},
          {"comparisonsLeftOut", sweep.comparisons_left_out},
          {"done", sweep.done},
          {"failed", sweep.failed},
          {"config", std::move(base)}};
}

Json timeline_json(const ReportTimeline& timeline) {
  return {{"key", timeline.key},
          {"policy", timeline.policy},
          {"startNs", timeline.start_ns},
          {"iterationNs", timeline.iteration_ns},
          {"chart", chart_json(timeline.chart, ChartLevels::kIncluded)},
          {"slices", timeline.slices},
          {"joined", timeline.joined},
          {"gpusLeftOut", timeline.gpus_left_out},
          {"slicesLeftOut", timeline.slices_left_out},
          {"sameResult", timeline.same_result}};
}

Json declarations_json() {
  Json metrics = list_json(report_metrics(), [](const ReportMetric& metric) -> Json {
    const char* form = metric.form == MetricForm::kPercent ? "percent"
                       : metric.form == MetricForm::kBytes ? "bytes"
                                                           : "plain";
    return {{"column", metric.column},
            {"title", metric.title},
            {"unit", metric.unit},
            {"less", metric.better == sweep::Better::kLess},
            {"form", form}};
  });
  Json trades = list_json(report_trades(), [](const ReportTrade& trade) -> Json {
    return {{"title", trade.title}, {"x", trade.x}, {"y", trade.y}};
  });
  return {{"metrics", std::move(metrics)}, {"trades", std::move(trades)}};
}

Json failure_json(const store::RunRecord& failure) {
  return {{"key", failure.run.key},
          {"sweep", failure.sweep},
          {"index", failure.run.index},
          {"seed", std::to_string(failure.run.seed)},
          {"settings", settings_json(failure.run.settings)},
          {"reason", failure.reason},
          {"host", failure.host},
          {"version", failure.version},
          {"finished", failure.finished_unix_ns / 1'000'000'000}};
}

}  // namespace

std::string report_json(const ReportData& data) {
  Json page = declarations_json();
  page["title"] = data.title;
  page["confidence"] = data.confidence;
  page["selection"] = data.selection;
  page["hosts"] = data.hosts;
  page["versions"] = data.versions;
  page["devices"] = data.devices;
  page["fillers"] = data.fillers;
  page["policies"] = list_json(data.policies, [](const ReportPolicy& policy) {
    return Json::array({policy.name, policy.parameters, policy.oracle});
  });
  page["sweeps"] = list_json(data.sweeps, sweep_json);
  page["runs"] = list_json(data.runs, run_json);
  page["points"] = list_json(data.points, point_json);
  page["failures"] = list_json(data.failures, failure_json);
  page["failuresLeftOut"] = data.failures_left_out;
  page["configsLeftOut"] = data.configs_left_out;
  page["repeated"] = data.repeated;
  page["counters"] = list_json(data.counters, [](const ReportCounter& counter) {
    return Json::array({counter.name, severity_name(counter.entry.severity), counter.entry.help,
                        counter.runs, counter.entry.count});
  });
  page["timelines"] = list_json(data.timelines, timeline_json);
  return script_json(page);
}

}  // namespace bubblesim::report
