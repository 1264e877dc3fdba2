// Inside of kernel_tables: one reader for each publisher's format. Readers append rows.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/model/fit/kernel_tables.hpp"

namespace bubblesim::model {

struct TableFile {
  std::string path;
  std::string device;
  std::string source;
  MeasurementRole role = MeasurementRole::kJudge;
};

[[nodiscard]] KernelWork gemm_work(std::string name, Precision precision, double m, double n,
                                   double k, double batch);
[[nodiscard]] KernelWork stream_work(std::string name, KernelKind kind, Precision precision,
                                     double elements, double bytes);

/// Vidur's mlp.csv: one row for each number of tokens, times in ms of CUDA kernels summed over
/// an operator, rounded to 1 us.
[[nodiscard]] Result<void> read_vidur_table(const TableFile& file, MeasuredKernels& out);

/// NeuSight's label tables: PyTorch operators in ms between CUDA events. An operator that
/// launches nothing takes several us there; the median of those is taken off every time.
[[nodiscard]] Result<void> read_neusight_table(const TableFile& file, MeasuredKernels& out);

/// TrioSim's VGG13 (batch 128, 224 x 224): convolutions of the forward pass, in us. Layers of odd
/// number are for fitting.
[[nodiscard]] Result<void> read_triosim_vgg13(const TableFile& file, MeasuredKernels& out);

/// Kineto traces whose operators carry their shapes ("Input Dims") and whose kernels carry the
/// operator's "External id". Equal operators give one row, their median.
[[nodiscard]] Result<void> read_operator_trace(const TableFile& file, MeasuredKernels& out);

}  // namespace bubblesim::model
