// Inside of kernel_tables: one reader for each publisher's format. Readers append rows.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/fit/kernel_tables.hpp"

namespace bubblesim::fit {

[[nodiscard]] model::KernelWork gemm_work(std::string name, model::Precision precision, double m,
                                          double n, double k, double batch);
[[nodiscard]] model::KernelWork stream_work(std::string name, model::KernelKind kind,
                                            model::Precision precision, double elements,
                                            double bytes);

/// Vidur's mlp.csv: one row for each number of tokens, times in ms of CUDA kernels summed over
/// an operator, rounded to 1 us.
[[nodiscard]] CheckedResult<void> read_vidur_table(const TableFile& file, KernelMeasurements& out);

/// NeuSight's label tables: PyTorch operators in ms between CUDA events. An operator that
/// launches nothing takes several us there; the median of those is taken off every time.
[[nodiscard]] CheckedResult<void> read_neusight_table(const TableFile& file,
                                                      KernelMeasurements& out);

/// TrioSim's VGG13 (batch 128, 224 x 224): convolutions of the forward pass, in us. Layers of odd
/// number are for fitting.
[[nodiscard]] CheckedResult<void> read_triosim_vgg13(const TableFile& file,
                                                     KernelMeasurements& out);

/// Kineto traces whose operators carry their shapes ("Input Dims") and whose kernels carry the
/// operator's "External id". Equal operators give one row, their median.
[[nodiscard]] CheckedResult<void> read_operator_trace(const TableFile& file,
                                                      KernelMeasurements& out);

}  // namespace bubblesim::fit
