// What the simulator says of a measured row.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/job_plan.hpp"
#include "sim/synth/software_spec.hpp"
#include "sim/validate/training_rows.hpp"

namespace bubblesim::validate {

/// What a table's jobs ran on.
struct Testbed {
  hardware::ClusterSpec cluster;
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
  synth::SoftwareSpec software;
};

/// Everything by name from a folder of configs. `cluster`, `software`: names of files.
[[nodiscard]] CheckedResult<Testbed> find_machine(const std::string& configs,
                                                  const std::string& cluster,
                                                  const std::string& software);

/// A request for a job on the machine.
[[nodiscard]] synth::JobRequest request_on(const Testbed& machine);

/// An iteration of the planned job alone, folded.
[[nodiscard]] Result<double> seconds_of(const synth::ParallelPlan& plan);

struct Prediction {
  double seconds = 0;          ///< of an iteration
  double tflops_per_gpu = 0;   ///< as counted_flops counts
  std::uint32_t micro_batch = 1;  ///< as given, or the fastest that fits where the row has none
  std::uint32_t chunks = 1;       ///< stages a rank: the same
};

/// Synthesises the row's job, folded, and runs it alone. Memory is checked only of sizes that the
/// row does not say: the others did run. Layers that lack two to divide over the stages are one
/// fewer in the first and in the last (Llama 3, section 3.3.2). Fault: the plan cannot be built.
[[nodiscard]] Result<Prediction> predict(const TrainingRow& row, const Testbed& machine);

}  // namespace bubblesim::validate
