// Fits the constants of an Efficiency to measured kernels. Few constants with a meaning each,
// fitted together to all rows of a kind; the loss is robust and on log(model / measured), so that
// every kernel counts alike whatever its length. Rows for judging are never looked at, except by
// `kernel_errors`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/fit/kernel_tables.hpp"

namespace bubblesim::model {

/// Errors of model / measured - 1 over some rows.
struct KernelErrors {
  std::string name;         ///< "gemm, fp16"
  MeasurementRole role = MeasurementRole::kFit;
  std::size_t rows = 0;
  std::size_t long_rows = 0;       ///< measured at 20 us or more
  double mean_absolute = 0;        ///< over all rows
  double mean_absolute_long = 0;   ///< over long rows; 0 without any
  double bias = 0;                 ///< mean, signed
  double worst = 0;                ///< of the largest magnitude, signed
  std::string worst_row;           ///< its source and work
};

struct FittedConstant {
  std::string path;    ///< "gemm/math_share"
  double start = 0;
  double value = 0;
  std::string source;  ///< the sentence for the file: tables, rows, error
};

struct KernelFit {
  Efficiency efficiency;                 ///< of the start, with fitted constants put in
  std::vector<FittedConstant> constants;
  std::vector<KernelErrors> errors;      ///< by kind and precision, fit rows before judge rows
};

/// Devices by id, as the rows name them.
using MeasuredDevices = std::map<std::string, hardware::GpuSpec, std::less<>>;

/// A row of a device that `devices` lacks is a fault. Kinds with too few rows keep their start.
[[nodiscard]] Result<KernelFit> fit_kernels(const MeasuredKernels& measured,
                                            const MeasuredDevices& devices,
                                            const Efficiency& start);

/// The errors of an Efficiency without fitting it.
[[nodiscard]] Result<std::vector<KernelErrors>> kernel_errors(const MeasuredKernels& measured,
                                                              const MeasuredDevices& devices,
                                                              const Efficiency& efficiency);

}  // namespace bubblesim::model
