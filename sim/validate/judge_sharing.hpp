// Simulates the rows of a table of co-location pairs, and says how far off each figure is and
// whether the systems come in the measured order.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/report.hpp"
#include "sim/validate/sharing_table.hpp"

namespace bubblesim::validate {

struct JudgedPair {
  SharingRow row;
  SharingFigures simulated{};
  Outcome outcome = Outcome::kPredicted;
  std::string note;  ///< why it is not predicted

  /// Relative. Precondition: predicted.
  [[nodiscard]] double error(SharingMetric metric) const {
    const auto i = static_cast<std::size_t>(metric);
    return simulated[i] / row.measured[i] - 1;
  }
};

/// Errors of one metric under one system.
struct SharingSummary : ErrorSummary {
  std::string system;
  SharingMetric metric = SharingMetric::kP95;
  std::string role;      ///< "fit", "judge", "all"
  double aim = 0;        ///< of the mean absolute error; 0: none
  double within_aim = 0; ///< share of rows; 1 without aim
};

/// Whether a pair's systems come in the measured order of one metric.
struct SharingOrder {
  std::string inference;
  std::string training;
  SharingMetric metric = SharingMetric::kP95;
  std::size_t compared = 0;  ///< pairs of systems whose measured figures differ
  std::size_t right = 0;     ///< of these, in the same order simulated
  std::string measured;      ///< "tally < time_slicing < mps"
  std::string simulated;
};

/// Everything that a judgement stands on, read once.
struct SharingStage {
  SharingSetting setting;
  PairMachine machine;
  std::vector<PairWorkload> workloads;
  const policy::Registry* policies = nullptr;
};

[[nodiscard]] CheckedResult<SharingStage> find_sharing_stage(const std::string& setting,
                                                             const std::string& configs,
                                                             const policy::Registry& policies);

/// In the order of the rows; the same on any number of threads. Faults: parameters that a policy
/// does not have. A system whose policy does not exist is stated; a row whose workload is not known
/// or cannot run has failed, and the others are judged all the same.
[[nodiscard]] CheckedResult<std::vector<JudgedPair>> judge_sharing(
    const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
    const std::function<void(const std::string&)>& progress);

[[nodiscard]] std::vector<SharingSummary> summarise_sharing(const std::vector<JudgedPair>& rows);
[[nodiscard]] std::vector<SharingOrder> order_sharing(const std::vector<JudgedPair>& rows);

}  // namespace bubblesim::validate
