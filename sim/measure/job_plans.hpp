// Makes of a loaded run of one rank what processes launch: a plan of the training job, and one of
// each filler.
#pragma once

#include <string_view>
#include <vector>

#include "capture/replay/job_plan.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/program/program.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "traces/trace.hpp"

namespace bubblesim::measure {

/// What a plan needs to know beside the run. Pointers may be null and outlive the call.
struct PlanSetup {
  const policy::PolicySpec* spec = nullptr;  ///< whose needs are reported; null: no policy
  /// What the policy decided, by client: priorities, SMs; null: nothing.
  const std::vector<policy::ClientSharing>* shares = nullptr;
  const schedule::BubbleTable* bubbles = nullptr;  ///< of the rank, if the policy is told of them
  Duration length{};             ///< arrivals are drawn up to here; 0: the config's duration
  bool record_operations = false;
};

struct PlannedJob {
  capture::JobPlan plan;
  CounterSet counters;  ///< of drawing arrivals
};

/// A plan of the program, with forms for its profiles; what the job is is left out. Each operation
/// but collectives lasts `slowdown` times its duration.
[[nodiscard]] capture::JobPlan plan_of_program(const program::Program& program,
                                               const hardware::GpuSpec& device,
                                               double slowdown = 1);

/// The rank of the run, as client 0. Fault: several ranks (run::lone_rank makes one of them),
/// durations that vary between iterations (jitter_cv).
[[nodiscard]] Result<PlannedJob> training_plan(const run::LoadedRun& run, const PlanSetup& setup);

/// The filler (into RunConfig::fillers), as this client. Requests arrive when they do in a
/// simulation of the run. Fault: what a real GPU run cannot do, with its place in the config:
/// continuous batching, fill jobs, instances that a policy's placer places; arrivals that cannot be
/// read, or have no end.
[[nodiscard]] Result<PlannedJob> filler_plan(const run::LoadedRun& run, std::size_t filler,
                                             ClientId client, const PlanSetup& setup);

/// The training job and every filler, which is client 1 and up in the order of the config, as in a
/// simulation.
[[nodiscard]] Result<std::vector<PlannedJob>> job_plans(const run::LoadedRun& run,
                                                        const PlanSetup& setup);

// Between what the GPU model knows of a kernel and what a plan says of it.

/// A shape of which the device holds as many blocks an SM as of the profile, with the profile's
/// warps, and registers and shared memory that come to what it takes: for programs that do not say
/// how their kernels were launched.
[[nodiscard]] traces::LaunchShape shape_of(const program::KernelProfile& profile,
                                           const hardware::GpuSpec& spec);

/// What a plan says of such a kernel. `shape` may be null: not known.
[[nodiscard]] capture::KernelForm form_of(const program::KernelProfile& profile,
                                          const traces::LaunchShape* shape, std::string_view name,
                                          const hardware::GpuSpec& spec);

/// What the GPU model knows of such a form, with the shares that the device gives its class.
[[nodiscard]] program::KernelProfile class_profile_of(const capture::KernelForm& form,
                                                  const hardware::GpuSpec& spec);

/// What the GPU model knows of such a form.
[[nodiscard]] program::KernelProfile profile_of(const capture::KernelForm& form,
                                            const hardware::GpuSpec& spec);

}  // namespace bubblesim::measure
