// An inference program from a table of kernels by Orion's profiler: CSV with the columns Name,
// Profile (1 compute, 0 memory, -1 unknown), Memory_footprint, SM_usage (SMs that the kernel needs,
// not capped), Duration (ns). Source of these meanings: Orion (EuroSys'24),
// profiling/postprocessing.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"

namespace bubblesim::workload {

/// One pass: every kernel of the table in order on one stream, launched `launch_gap` apart, then
/// a wait for the last one. A kernel fills each SM that it uses (the table has no shapes).
/// Faults name the line. Rows whose duration is zero are counted and left out.
[[nodiscard]] Result<program::Program> parse_kernel_table(std::string_view text,
                                                          const std::string& file,
                                                          const hardware::GpuSpec& spec,
                                                          Duration launch_gap);

/// Reads such a table from a file of at most 64 MiB.
[[nodiscard]] Result<program::Program> read_kernel_table(const std::string& path,
                                                const hardware::GpuSpec& spec,
                                                Duration launch_gap);

}  // namespace bubblesim::workload
