// The place that this very process holds at a gate, given up from outside of its GateClient: after
// an exec, whose new image knows nothing of the old one's client, and at an exit while threads are
// still at the gate.
#pragma once

#include <string>

#include "sim/base/ids.hpp"

namespace bubblesim::capture::interpose {

/// Leaves the place to the next process, or image, that asks for it, and gives back the rows of all
/// threads; those that wait go on. False, and nothing is done: the place is not held by this
/// process, as far as that is sure, or there is no such gate.
bool give_up_own_place(const std::string& gate, ClientId client) noexcept;

}  // namespace bubblesim::capture::interpose
