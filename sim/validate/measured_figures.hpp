// Figures of one config by policy, filler and metric, over the repetitions of a side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/validate/compare_measured.hpp"

namespace bubblesim::validate {

struct FigureName {
  std::string policy;  ///< as FigureNames::policies() has it; what is alone has none
  std::string filler;  ///< empty: the training job
  MeasuredMetric metric = MeasuredMetric::kSlowdown;
};

/// A figure over repetitions.
struct SideValues {
  std::size_t count = 0;  ///< of repetitions that have it; 0: the rest says nothing
  double median = 0;      ///< of an even number: the mean of the middle two
  double low = 0;
  double high = 0;
  bool lower_bound = false;  ///< in one of them
};

/// What policies and fillers of a config are called. Borrows the config.
class FigureNames {
 public:
  using Side = std::vector<const ReportFigures*>;

  explicit FigureNames(const MatchedReports& config);

  /// Of either side, simulated first: the policy's name; with its parameters where a report has
  /// the policy several times.
  [[nodiscard]] std::vector<std::string> policies() const;
  /// Of either side, as are those below.
  [[nodiscard]] std::vector<std::string> fillers(const std::string& policy) const;
  [[nodiscard]] std::vector<std::string> fillers_alone() const;
  [[nodiscard]] bool has(const Side& side, const std::string& policy) const;
  [[nodiscard]] bool has(const Side& side, const std::string& policy,
                         const std::string& filler) const;
  /// Whether some filler may run under the policy on some report of the side.
  [[nodiscard]] bool admits(const Side& side, const std::string& policy) const;
  [[nodiscard]] SideValues values(const Side& side, const FigureName& name) const;
  /// How the parameters of the sides differ; empty: they do not, or are not known.
  [[nodiscard]] std::string other_parameters(const std::string& policy) const;

 private:
  [[nodiscard]] std::string key_of(const PolicyFigures& policy) const;
  [[nodiscard]] const PolicyFigures* find(const ReportFigures& report,
                                          const std::string& policy) const;
  [[nodiscard]] std::optional<BoundedFigure> figure(const ReportFigures& report,
                                                    const FigureName& name) const;
  const MatchedReports& config_;
  std::vector<std::string> repeated_;  // policies that some report has several times
};

}  // namespace bubblesim::validate
