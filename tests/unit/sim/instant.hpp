// Instants in nanoseconds since the start of the simulation.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"

namespace bubblesim {

constexpr SimTime at(std::int64_t ns) { return SimTime{Duration{ns}}; }

}  // namespace bubblesim
