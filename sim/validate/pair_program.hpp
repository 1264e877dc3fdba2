// A pair's workload as a program on one GPU: every kernel timed by the roofline of sim/model (or
// given by the workload), launched by one host thread on one stream.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/program/program.hpp"
#include "sim/validate/pair_workload.hpp"

namespace bubblesim::validate {

// A GPU for simulating measured sharing, whole or as a MIG instance. Its constants may differ from
// those of its file.

struct PairMachine {
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  std::string models;  ///< folder of model files
};

/// `device`: the id of a file of configs/devices and of configs/efficiency.
[[nodiscard]] CheckedResult<PairMachine> find_pair_machine(const std::string& device,
                                                      const std::string& configs);

/// A MIG instance of this many compute slices as a machine of its own: its SMs and their peak, and
/// its share of the memory slices, of their bandwidth and L2. Fault: the GPU has no such instance.
[[nodiscard]] Result<PairMachine> mig_instance(const PairMachine& whole, std::uint32_t slices);

/// Sets a constant of sharing, such as "time_slice" or "contention/l2_slowdown"; times in
/// nanoseconds. Fault: an unknown constant.
[[nodiscard]] Result<void> put_constant(hardware::GpuSpec& gpu, const std::string& key,
                                        double value);

/// One pass: an iteration or a request. It has `batch` samples if the measured table sets the
/// workload's batch. Faults: such a workload with a `batch` of 0, an unknown model, a shape that
/// the model does not support, too many kernels for a program.
[[nodiscard]] CheckedResult<program::Program> pair_program(const PairWorkload& workload,
                                                            const PairMachine& machine,
                                                            std::uint32_t batch = 0);

/// The program with all durations (of kernels, copies and host) times `factor` (> 0).
[[nodiscard]] program::Program stretched(program::Program program, double factor);

}  // namespace bubblesim::validate
