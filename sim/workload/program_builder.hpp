// Turns a recorded trace into a program by finding the dependencies of each call and operation.
//
// Dependencies in the trace are used as they are (launches, stream order, event edges). The others
// are inferred from the calls and counted (build_counters.hpp; each rule stands beside its code,
// build_*.cpp). Every delay that no dependency explains is kept as a lag on the dependency that was
// satisfied last, so that an unperturbed replay reproduces the recorded times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/workload/job_program.hpp"
#include "traces/iterations/job_pass.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// The part of a trace that becomes the program.
enum class Window : std::uint8_t {
  kWhole,       ///< all, once: to compare a replay with the recording
  kIterations,  ///< the pass of traces/iterations/job_pass.hpp, to be repeated
  kMedianIteration,  ///< the iteration of median length in that pass
};

struct BuildOptions {
  Window window = Window::kIterations;
  traces::IterationChoice iterations = {};  ///< kWhole: not used
  std::size_t threads = 1;  ///< number that build ranks; has no effect on the programs
};

/// Counters that building adds to Program::counters, by name (declared in build_counters.hpp). The
/// program of one rank; its collectives are not joined with those of other ranks. Faults: no device
/// operation in the window; chosen iterations that are not recorded.
[[nodiscard]] Result<program::Program> build_program(const traces::RankTrace& trace,
                                            const hardware::GpuSpec& spec,
                                            const BuildOptions& options);

/// The programs of all ranks of an aligned job, joined in their collectives.
[[nodiscard]] Result<JobProgram> build_job_program(const traces::JobTrace& job,
                                                   const hardware::GpuSpec& spec,
                                                   const BuildOptions& options);

}  // namespace bubblesim::workload
