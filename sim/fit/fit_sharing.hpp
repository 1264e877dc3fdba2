// Fits a device's constants of sharing to all tables that were measured on it at once: its time
// slice, the cost of a switch of contexts, and that of a switch of clients in one context.
//
// Rows with the role fit only, of the systems mps, mps_priority and time_slicing. What is made
// small is the mean |relative error| of a table's figures (90th and 99th percentiles left out),
// mean over the tables. Rows that are stated take no part.
// Coordinate search: each constant in turn is tried at its value times and over a step, which
// shrinks when nothing is better. Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::fit {

struct SharingFit {
  Duration time_slice{};
  Duration context_switch{};
  Duration client_switch{};
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
