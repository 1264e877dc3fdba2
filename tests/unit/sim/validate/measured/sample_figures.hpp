// Small reports whose errors can be worked out by hand.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/compare_measured.hpp"

namespace bubblesim::validate {

/// Alone, training takes 10 ms an iteration and the filler "svc" serves 100 requests a second.
inline ReportFigures figures(const std::string& config, std::vector<PolicyFigures> policies) {
  ReportFigures out;
  out.config = config;
  out.device = "card";
  out.alone_iteration_ms = 10;
  out.alone = {{"svc", 100}};
  out.policies = std::move(policies);
  return out;
}

inline PolicyFigures policy(const std::string& name, double iteration_ms, double requests_per_s,
                            double p95_ms = 5) {
  PolicyFigures out;
  out.policy = name;
  out.iteration_ms = iteration_ms;
  FillerFigures filler;
  filler.name = "svc";
  filler.requests_per_s = requests_per_s;
  filler.of_own_gpu = requests_per_s / 100;
  filler.latency[1] = BoundedFigure{p95_ms, false};
  out.fillers = {filler};
  return out;
}

inline ReportGroup group(const std::string& folder, std::vector<ReportFigures> repetitions) {
  return {folder, repetitions.front().config, std::move(repetitions)};
}

inline const MeasuredCell* find_cell(const std::vector<MeasuredCell>& cells,
                                     const std::string& name, MeasuredMetric metric) {
  for (const MeasuredCell& cell : cells) {
    if (cell.name() == name && cell.metric == metric) return &cell;
  }
  return nullptr;
}

}  // namespace bubblesim::validate
