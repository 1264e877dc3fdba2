// The environment that makes CUDA load the recorder into a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// A shared object that comes with the program and is loaded into jobs.
struct WantedLibrary {
  std::string file;          ///< its name
  std::string what;          ///< in a fault: "the recorder"
  std::string build_folder;  ///< within a build tree
};
[[nodiscard]] WantedLibrary recorder_library();

/// Searches beside the program, which lies in `program_folder`: installed places (../lib and the
/// like), then a build tree. The fault lists them. `wanted`, if not empty, is the file itself, and
/// must be a shared object. The result is an absolute path.
[[nodiscard]] Result<std::string> find_library(const std::string& program_folder,
                                               const std::string& wanted,
                                               const WantedLibrary& library = recorder_library());

struct JobSettings {
  std::string library;                  ///< absolute
  std::optional<StartRequest> request;  ///< none: the recorder idles until a command
  std::string socket_folder;            ///< empty: as the environment has it
  std::string only;                     ///< empty: as the environment has it
};

struct JobEnvironment {
  Variables variables;
  std::vector<std::string> notes;  ///< what will not be recorded, a sentence each
};

/// Faults: CUDA_INJECTION64_PATH names another tool, which would be lost. NVTX's and NCCL's
/// variables that name another tool stay as they are, with a note.
[[nodiscard]] Result<JobEnvironment> job_environment(const Variables& inherited,
                                                     const JobSettings& settings);

}  // namespace bubblesim::capture
