// A short-lived program: its input, what it wrote, how it ended; never waited for without a bound.
#pragma once

#include <string>
#include <vector>

#include "sim/base/child_process.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {

struct ProgramEnd {
  int exit_code = 0;   ///< 128 + n where signal n ended it
  std::string output;  ///< both outputs, at most 64 KiB
};

/// The file that `name` means in the PATH of `environment`; empty: there is none.
[[nodiscard]] std::string find_program(const std::string& name, const Variables& environment);

/// `command[0]` is a path. Runs in a session of its own, so that no terminal's signal reaches it or
/// what it leaves behind. Faults: it could not be started; it had not ended after `patience` of the
/// machine's time, and was killed.
[[nodiscard]] Result<ProgramEnd> run_program(const std::vector<std::string>& command,
                                             const Variables& environment,
                                             const std::string& input, Duration patience);

}  // namespace bubblesim::capture
