// A pair's workload as a program on one GPU: every kernel timed by the roofline of sim/model (or
// as the workload gives it), launched by one host thread on one stream.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/program/program.hpp"
#include "sim/validate/pair_machine.hpp"
#include "sim/validate/pair_workload.hpp"

namespace bubblesim::validate {

/// One pass: an iteration, or a request, of `batch` samples where the workload leaves that to the
/// table. Fault: such a workload without a batch, an unknown model, a shape that it does not have,
/// more kernels than fit.
[[nodiscard]] CheckedResult<program::Program> pair_program(const PairWorkload& workload,
                                                            const PairMachine& machine,
                                                            std::uint32_t batch = 0);

/// The program with all of its durations, of kernels, copies and host, times `factor` (> 0).
[[nodiscard]] program::Program stretched(program::Program program, double factor);

}  // namespace bubblesim::validate
