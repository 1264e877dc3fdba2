// Fits a device's constants of sharing to all tables that were measured on it at once: its time
// slice, the cost of a switch of contexts, the delay of a switch of clients in one context, and
// what a part of the SMs reaches.
//
// Rows with the role fit only, of the systems mps, mps_priority, time_slicing and sm_cap. What is
// made small is the mean |relative error| of a table's figures (90th and 99th percentiles left
// out), mean over the tables. Rows that are stated take no part.
// Coordinate search: each constant in turn is tried at its value times and over a step, which
// shrinks when nothing is better. Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::fit {

/// A constant of sharing as a device file has it.
struct SharingConstant {
  std::string_view key;
  double (*get)(const hardware::GpuSpec& gpu);  ///< ns, or a ratio
  void (*put)(hardware::GpuSpec& gpu, double value);
  bool is_time;
  double least, most;
};
[[nodiscard]] std::span<const SharingConstant> sharing_constants();

struct SharingFit {
  std::vector<double> constants;  ///< of sharing_constants()
  double start_error = 0;  ///< with the device file's constants
  double error = 0;
  std::size_t rows = 0;
  std::size_t evaluations = 0;
};

/// The rows that a fit may see.
[[nodiscard]] std::vector<validate::SharingRow> fit_rows(
    const std::vector<validate::SharingRow>& rows);

/// What a fit makes small. Rows that were not predicted count as an error of 1.
[[nodiscard]] double sharing_loss(const std::vector<validate::JudgedRow>& rows);

/// `device`: one of the stage's. Fault: no row of it to fit; those of judge_sharing.
[[nodiscard]] CheckedResult<SharingFit> fit_sharing(
    const std::vector<validate::SharingRow>& rows, validate::SharingStage stage,
    const std::string& device, std::size_t threads, std::size_t rounds,
    const std::function<void(const std::string&)>& progress);

}  // namespace bubblesim::fit
