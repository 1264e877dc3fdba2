// One rank of a job by itself, as a single GPU can run it for real: what the other ranks do to it
// becomes part of its own program.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// The run with this rank (by its number in the job) on one GPU. The whole job is simulated alone,
/// with the config's stragglers, until the rank has ended its second pass; each collective then
/// lasts, from this rank's arrival to this rank's end, what it lasted in that pass, waits for peers
/// included, and meets no peer; it goes on while it is switched out, as a stand-in of `measure`
/// does. What waits for pipeline peers stays known as such. A policy is told of a job of one GPU:
/// nothing but this rank's fillers can cost it anything.
///
/// Fillers that the config has on that rank's GPU stay, with `gpus` and `instances` of one GPU.
/// Requests go round robin to the GPUs of a filler, so this one gets one in k: arrivals with gamma
/// gaps of k times the mean and 1 / sqrt(k) of the coefficient of variation, which is what every
/// k-th arrival of such a process is; of recorded arrivals all, k times as far apart.
///
/// Fault: no such rank; a server over several GPUs; a job that stops.
[[nodiscard]] Result<LoadedRun> lone_rank(const LoadedRun& run, std::uint32_t rank);

// How long a filler's program takes on a GPU of its own.

/// One pass, from its first call to the end of its last operation and call. 0: it never ends.
[[nodiscard]] Duration measure_pass(const program::Program& program,
                                    const hardware::GpuSpec& device);

}  // namespace bubblesim::run
