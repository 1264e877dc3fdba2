// The recorded process: its rank, program and environment, and messages to its user.
#pragma once

#include <cstdint>
#include <string>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture {

struct JobIdentity {
  std::int64_t pid = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string executable;  ///< file name of the program, without folders
};

/// Rank: RANK (torchrun), OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, the first with a number;
/// world size in the same way. Only numbers below 2^24 count.
[[nodiscard]] JobIdentity identify_job(const Environment& env);

/// getenv. For threads of the job only, since a setenv in another thread moves the memory that
/// getenv reads: the recorder's own threads never look at the environment.
[[nodiscard]] Environment process_environment();

// The one way in which the recorder writes to the user of the job: a line on stderr.

/// One write of "bubblesim capture: TEXT\n"; text that the system refuses is lost. The text
/// bypasses stdio, whose buffers are the job's.
void say(const std::string& text) noexcept;

}  // namespace bubblesim::capture
