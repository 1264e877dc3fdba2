// Instants of a TurnClock, whose time begins at 0.
#pragma once

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {

inline HostTime at(Duration since_start) { return HostTime{since_start}; }

}  // namespace bubblesim::capture
