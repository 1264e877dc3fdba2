// Makes the plans that processes launch from a loaded run of one rank: one of the training job, and
// one of each filler.
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

/// Inputs of a plan beside the run. Pointers may be null and outlive the call.
struct PlanSetup {
  const policy::PolicySpec* spec = nullptr;  ///< the policy to report to; null: none
  /// The policy's priorities and SMs, by client; null: none.
  const std::vector<policy::ClientSharing>* shares = nullptr;
  const schedule::BubbleTable* bubbles = nullptr;  ///< of the rank, if the policy hears of them
  Duration length{};             ///< arrivals are drawn up to here; 0: the config's duration
  bool record_operations = false;
};

struct PlannedJob {
  capture::JobPlan plan;
  CounterSet counters;  ///< of drawing arrivals
};

/// A plan of the program, with forms for its profiles, without the job's role. Each operation but
/// collectives lasts `slowdown` times its duration.
[[nodiscard]] capture::JobPlan plan_of_program(const program::Program& program,
                                               const hardware::GpuSpec& device,
                                               double slowdown = 1);

/// The run's rank, as client 0. Fault: several ranks (run::lone_rank makes one of them), durations
/// that vary between iterations (jitter_cv).
[[nodiscard]] Result<PlannedJob> training_plan(const run::LoadedRun& run, const PlanSetup& setup);

/// The filler (into RunConfig::fillers), as this client. Requests arrive as in a simulation of the
/// run. Fault: a feature that a real GPU cannot run, with its place in the config: continuous
/// batching, fill jobs, instances that a policy's placer places; arrivals that cannot be read, or
/// have no end.
[[nodiscard]] Result<PlannedJob> filler_plan(const run::LoadedRun& run, std::size_t filler,
                                             ClientId client, const PlanSetup& setup);

// Translates between kernels of the GPU model and of a plan.

/// A shape with as many blocks an SM as the profile, with the profile's warps, and with registers
/// and shared memory to match: for programs that do not give the kernels' launch shapes.
[[nodiscard]] traces::LaunchShape shape_of(const program::KernelProfile& profile,
                                           const hardware::GpuSpec& spec);

/// The stand-in form of a kernel with this profile. `shape` may be null: not known.
[[nodiscard]] capture::KernelForm form_of(const program::KernelProfile& profile,
                                          const traces::LaunchShape* shape, std::string_view name,
                                          const hardware::GpuSpec& spec);

/// The profile of a kernel with this form, with the device's shares for its class.
[[nodiscard]] program::KernelProfile class_profile_of(const capture::KernelForm& form,
                                                  const hardware::GpuSpec& spec);

/// The profile of a kernel with this form.
[[nodiscard]] program::KernelProfile profile_of(const capture::KernelForm& form,
                                            const hardware::GpuSpec& spec);

}  // namespace bubblesim::measure
