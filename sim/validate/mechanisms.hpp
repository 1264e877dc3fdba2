// Mechanisms of the sharing model that can be left out, so that each shows what it is worth: the
// errors over all tables with it and without it (an ablation).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::validate {

struct Mechanism {
  std::string_view name;
  std::string_view replacement;  ///< what is there in its place
  void (*leave_out)(SharingStage& stage);
  /// Whether it can move the row's figures; told by who shares what, before anything is simulated.
  bool (*touches)(const SharingRow& row, const SharingStage& stage);
};

[[nodiscard]] std::span<const Mechanism> sharing_mechanisms();

/// Fault: no such mechanism; with the nearest name.
[[nodiscard]] Result<void> leave_out(SharingStage& stage, std::string_view name);

/// What leaving one mechanism out does to the errors of one metric of a table under one system.
struct Ablation {
  std::string mechanism;
  std::string table;
  std::string system;
  std::string metric;
  std::size_t rows = 0;
  double error_with = 0;  ///< mean |error|, of rows marked judge where there are any
  double error_without = 0;
};

/// Judges the rows once with all mechanisms and, without each, those that it touches. Only cells
/// whose mean |error| moves by 0.1 points or more are told. Faults: as judge_sharing.
[[nodiscard]] CheckedResult<std::vector<Ablation>> ablate_sharing(
    const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
    const std::function<void(const std::string&)>& progress);

[[nodiscard]] std::string ablation_text(const std::vector<Ablation>& ablations);

}  // namespace bubblesim::validate
