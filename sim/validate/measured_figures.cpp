#include "sim/validate/measured_figures.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/add_once.hpp"

namespace bubblesim::validate {
namespace {

using Figure = std::optional<BoundedFigure>;

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Figure plain(const std::optional<double>& value, double factor = 1) {
  return value ? Figure(BoundedFigure{*value * factor, false}) : std::nullopt;
}

template <class T>
const T* named(const std::vector<T>& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const T& it) { return it.name == name; });
  return found == list.end() ? nullptr : &*found;
}

Figure filler_alone(const ReportFigures& report, const FigureName& name) {
  const FillerAlone* filler = named(report.alone, name.filler);
  return filler == nullptr ? std::nullopt : plain(filler->requests_per_s);
}

Figure filler_figure(const FillerFigures& filler, MeasuredMetric metric) {
  switch (metric) {
    case MeasuredMetric::kFillerThroughput: return plain(filler.requests_per_s);
    case MeasuredMetric::kFillerOfOwnGpu: return plain(filler.of_own_gpu, 100);
    case MeasuredMetric::kP50: return filler.latency[0];
    case MeasuredMetric::kP95: return filler.latency[1];
    case MeasuredMetric::kP99: return filler.latency[2];
    default: return std::nullopt;
  }
}

Figure training_figure(const ReportFigures& report, const PolicyFigures& policy,
                       MeasuredMetric metric) {
  if (metric == MeasuredMetric::kIteration) return plain(policy.iteration_ms);
  if (!policy.iteration_ms || !report.alone_iteration_ms) return std::nullopt;
  return BoundedFigure{100 * (*policy.iteration_ms / *report.alone_iteration_ms - 1), false};
}

}  // namespace

FigureNames::FigureNames(const MatchedReports& config) : config_(config) {
  for (const Side* side : {&config.simulated, &config.measured}) {
    for (const ReportFigures* report : *side) {
      std::vector<std::string> seen;
      for (const PolicyFigures& policy : report->policies) {
        if (contains(seen, policy.policy)) add_once(repeated_, policy.policy);
        seen.push_back(policy.policy);
      }
    }
  }
}

std::string FigureNames::key_of(const PolicyFigures& policy) const {
  if (!contains(repeated_, policy.policy)) return policy.policy;
  return policy.policy + " (" + policy.parameters + ")";
}

const PolicyFigures* FigureNames::find(const ReportFigures& report,
                                       const std::string& policy) const {
  for (const PolicyFigures& it : report.policies) {
    if (key_of(it) == policy) return &it;
  }
  return nullptr;
}

std::vector<std::string> FigureNames::policies() const {
  std::vector<std::string> out;
  for (const Side* side : {&config_.simulated, &config_.measured}) {
    for (const ReportFigures* report : *side) {
      for (const PolicyFigures& policy : report->policies) add_once(out, key_of(policy));
    }
  }
  return out;
}

std::vector<std::string> FigureNames::fillers(const std::string& policy) const {
  std::vector<std::string> out;
  for (const Side* side : {&config_.simulated, &config_.measured}) {
    for (const ReportFigures* report : *side) {
      const PolicyFigures* figures = find(*report, policy);
      if (figures == nullptr) continue;
      for (const FillerFigures& filler : figures->fillers) add_once(out, filler.name);
    }
  }
  return out;
}

std::vector<std::string> FigureNames::fillers_alone() const {
  std::vector<std::string> out;
  for (const Side* side : {&config_.simulated, &config_.measured}) {
    for (const ReportFigures* report : *side) {
      for (const FillerAlone& filler : report->alone) add_once(out, filler.name);
    }
  }
  return out;
}

bool FigureNames::has(const Side& side, const std::string& policy) const {
  return std::any_of(side.begin(), side.end(), [&](const ReportFigures* report) {
    return find(*report, policy) != nullptr;
  });
}

bool FigureNames::has(const Side& side, const std::string& policy,
                      const std::string& filler) const {
  return std::any_of(side.begin(), side.end(), [&](const ReportFigures* report) {
    const PolicyFigures* figures = find(*report, policy);
    return figures != nullptr && named(figures->fillers, filler) != nullptr;
  });
}

bool FigureNames::admits(const Side& side, const std::string& policy) const {
  return std::any_of(side.begin(), side.end(), [&](const ReportFigures* report) {
    const PolicyFigures* figures = find(*report, policy);
    if (figures == nullptr) return false;
    const auto& fillers = figures->fillers;
    return std::any_of(fillers.begin(), fillers.end(),
                       [](const FillerFigures& filler) { return filler.admitted; });
  });
}

Figure FigureNames::figure(const ReportFigures& report, const FigureName& name) const {
  if (name.metric == MeasuredMetric::kAloneIteration) return plain(report.alone_iteration_ms);
  if (name.metric == MeasuredMetric::kFillerAlone) return filler_alone(report, name);
  const PolicyFigures* policy = find(report, name.policy);
  if (policy == nullptr) return std::nullopt;
  if (name.filler.empty()) return training_figure(report, *policy, name.metric);
  const FillerFigures* filler = named(policy->fillers, name.filler);
  return filler == nullptr ? std::nullopt : filler_figure(*filler, name.metric);
}

SideValues FigureNames::values(const Side& side, const FigureName& name) const {
  SideValues out;
  std::vector<double> values;
  for (const ReportFigures* report : side) {
    const Figure value = figure(*report, name);
    if (!value) continue;
    values.push_back(value->value);
    out.lower_bound = out.lower_bound || value->lower_bound;
  }
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  out.count = values.size();
  out.low = values.front();
  out.high = values.back();
  out.median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  return out;
}

std::string FigureNames::other_parameters(const std::string& policy) const {
  const auto of = [&](const Side& side) -> std::string {
    for (const ReportFigures* report : side) {
      if (const PolicyFigures* figures = find(*report, policy)) return figures->parameters;
    }
    return {};
  };
  const std::string simulated = of(config_.simulated);
  const std::string measured = of(config_.measured);
  if (simulated.empty() || measured.empty() || simulated == measured) return {};
  return "other parameters: simulated " + simulated + ", measured " + measured;
}

}  // namespace bubblesim::validate
