// The environment of a gated job.
#pragma once

#include <cstdint>
#include <string>

#include "capture/control/job_environment.hpp"
#include "capture/live/live_plan.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// Device memory of a client of MPS: "0=1024M,1=1024M".
inline constexpr const char* kMpsMemoryLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

struct GatedJob {
  std::uint32_t client = 0;
  std::string gates;          ///< PolicyHost::gate_name() of its GPUs, a line each
  std::string folders;        ///< LiveFolder::path() of its GPUs, a line each
  std::string library;
  bool completions = false;   ///< whether ends of launches are reported
  std::string mps_directory;  ///< of the private daemon; empty: none
  std::string device;         ///< visible GPUs, UUIDs or indices; empty: as inherited
  std::size_t place = 0;      ///< GpuShare::place
};

/// `inherited`, with the gate's shared object first in LD_PRELOAD, and the job's share of the GPU
/// (set_share). An inherited limit of memory stays unless the plan has one.
[[nodiscard]] Variables gated_environment(const Variables& inherited, const GatedJob& job,
                                          const LivePlan& plan);

/// Number of ranks of this process's job, as torchrun, MPI or Slurm says; 1: none says it.
[[nodiscard]] std::uint32_t ranks_of_job(const Variables& inherited);

/// Fault: the path has a space or colon, at which the loader divides LD_PRELOAD.
[[nodiscard]] Result<void> can_be_preloaded(const std::string& library);

}  // namespace bubblesim::capture
