// Fits the constants of an Efficiency to measured kernels. Few constants with a meaning each,
// fitted together to all rows of a kind; the loss is robust and on log(model / measured), so that
// every kernel counts alike whatever its length. Rows for judging are never looked at, except by
// `kernel_errors`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/fit/fitted_file.hpp"
#include "sim/fit/kernel_tables.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/validate/error_summary.hpp"

namespace bubblesim::fit {

/// Errors of model / measured - 1 over some rows.
struct KernelErrors {
  std::string name;         ///< "gemm, fp16"
  validate::RowRole role = validate::RowRole::kFit;
  validate::ErrorSummary all;        ///< the worst row by its source and work
  validate::ErrorSummary long_rows;  ///< measured at 20 us or more
};

struct KernelFit {
  model::Efficiency efficiency;                 ///< of the start, with fitted constants put in
  std::vector<FittedConstant> constants;
  std::vector<KernelErrors> errors;      ///< by kind and precision, fit rows before judge rows
};

/// Devices by id, as the rows name them.
using MeasuredDevices = std::map<std::string, hardware::GpuSpec, std::less<>>;

/// A row of a device that `devices` lacks is a fault. Kinds with too few rows keep their start.
[[nodiscard]] Result<KernelFit> fit_kernels(const KernelMeasurements& measured,
                                            const MeasuredDevices& devices,
                                            const model::Efficiency& start);

/// The errors of an Efficiency without fitting it.
[[nodiscard]] Result<std::vector<KernelErrors>> kernel_errors(
    const KernelMeasurements& measured, const MeasuredDevices& devices,
    const model::Efficiency& efficiency);

}  // namespace bubblesim::fit
