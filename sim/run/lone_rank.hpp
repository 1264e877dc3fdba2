// One rank of a job by itself, as a single GPU can really run it: the effects of other ranks become
// part of its own program.
#pragma once

#include <cstdint>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/program.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

/// The run with this rank (by its number in the job) on one GPU. The whole job is simulated alone,
/// with the config's stragglers, until the rank has ended its second pass; each collective then has
/// the duration that it had in that pass, from this rank's arrival to this rank's end, waits for
/// peers included, and meets no peer; it continues while switched out, like a stand-in of
/// `measure`. Waits for pipeline peers stay marked. A policy sees a job of one GPU: only this
/// rank's fillers can slow it.
///
/// The config's fillers on that rank's GPU stay, with `gpus` and `instances` of one GPU. A filler's
/// requests go round robin to its k GPUs, so that this one gets every k-th: gamma gaps with k times
/// the mean and 1 / sqrt(k) of the coefficient of variation. Of recorded arrivals it gets all, k
/// times as far apart.
///
/// Fault: no such rank; a server over several GPUs; a job that stops.
[[nodiscard]] Result<LoadedRun> lone_rank(const LoadedRun& run, std::uint32_t rank);

// Measures a pass of a filler's program on a GPU of its own.

/// The time of one pass, from its first call to the end of its last operation and call. 0: it never
/// ends.
[[nodiscard]] Duration measure_pass(const program::Program& program,
                                    const hardware::GpuSpec& device);

}  // namespace bubblesim::run
