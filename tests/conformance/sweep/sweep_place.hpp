// A workplace with a small sweep over the sample job, from which tests of sweeps start.
#pragma once

#include <string>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {

/// Two policies with so many seeds each; a run is 500 ms of the sample job.
[[nodiscard]] Json small_sweep(int repetitions);

/// Writes it as sweep.json.
void write_sweep(const Workplace& place, const Json& sweep);

/// The results in a store as text, without wall-clock times or facts of the machine: the same runs
/// give the same bytes.
[[nodiscard]] std::string exported(const Workplace& place, const std::string& store);

/// The last line of `bubblesim sweep --json`; null if there is none.
[[nodiscard]] Json last_event(const std::string& out);

}  // namespace bubblesim::app_test
