// results.json of `bubblesim run` and `bubblesim measure` back to the figures that are judged. A
// figure that a report does not have (null, no such key, no iteration finished) is missing, never
// zero; keys that are not judged are not read, so that reports may grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::validate {

inline constexpr std::array<int, 3> kJudgedPercentiles = {50, 95, 99};

/// A figure that may be known from below only, such as a percentile of latencies.
struct BoundedFigure {
  double value = 0;
  bool lower_bound = false;  ///< the true value may be far more
};

/// A run that ends while requests are under way has lower bounds only, but few of them move a
/// percentile p by little: it counts as known if at most this share of 1 - p had not ended (p95:
/// 1 % of the requests, so that it is at worst the 96th percentile's value).
inline constexpr double kUnfinishedShare = 0.2;

struct FillerFigures {
  std::string name;
  bool admitted = true;  ///< on any GPU; reports without instances say nothing else
  std::optional<double> requests_per_s;
  std::optional<double> of_own_gpu;  ///< requests_per_s / the same on a GPU of its own
  std::array<std::optional<BoundedFigure>, kJudgedPercentiles.size()> latency{};  ///< ms
};

struct PolicyFigures {
  std::string policy;
  std::string parameters;  ///< "name=value;name=value", defaults included
  std::optional<double> iteration_ms;  ///< mean; missing: none finished in the window
  std::vector<FillerFigures> fillers;
};

/// A filler with a GPU of its own.
struct FillerAlone {
  std::string name;
  std::optional<double> requests_per_s;
};

struct ReportFigures {
  std::string place;   ///< the file, and the element if it holds several reports
  std::string config;
  std::string device;
  std::string measured;  ///< "gpu, 2026-11-22T10:00:00Z, driver 580.82"; empty: it was simulated
  std::optional<double> alone_iteration_ms;  ///< of the job without fillers
  std::vector<FillerAlone> alone;
  std::vector<PolicyFigures> policies;
};

/// It was measured on the simulator's GPU behind real processes: no GPU had a part in it.
[[nodiscard]] inline bool is_fake(const ReportFigures& report) {
  return report.measured.starts_with("fake");
}

/// One report, or a list of them. Faults, all at once and each with its JSON pointer: no JSON, a
/// value of another kind, a negative figure, a policy or filler without a name, a filler or a
/// policy with the same parameters twice, an empty list.
[[nodiscard]] CheckedResult<std::vector<ReportFigures>> read_reports(const std::string& path);
[[nodiscard]] CheckedResult<std::vector<ReportFigures>> parse_reports(std::string_view text,
                                                                      const std::string& file);

}  // namespace bubblesim::validate
