// A workplace with a small sweep over the sample job: what tests of sweeps start from.
#pragma once

#include <string>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {

/// Two policies with so many seeds each; a run is 500 ms of the sample job.
[[nodiscard]] Json small_sweep(int repetitions);

/// Writes it as sweep.json.
void write_sweep(const Workplace& place, const Json& sweep);

/// What a store says of its results, without anything of time or machine: byte for byte the same
/// for the same runs.
[[nodiscard]] std::string exported(const Workplace& place, const std::string& store);

/// The last line of `bubblesim sweep --json`; null if there is none.
[[nodiscard]] Json last_event(const std::string& out);

}  // namespace bubblesim::app_test
