// What launches ask of a policy, and what asking costs, as far as its parameters say so.
//
// `barrier`: whose launches it may hold: both; requests: training's too, for online fillers.
// `ask`, `tell`: a launch that may be held goes on so much later, and one that the policy is only
// told of. On a real GPU the gate takes what it takes; a simulation takes these.
#pragma once

#include <span>

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// Whether launches of the protected client must ask. Without `barrier`: no.
[[nodiscard]] bool holds_training(const ParameterSet& given, std::span<const ClientInfo> clients);

/// How much later a launch of the client goes on, whatever is decided. 0 where nothing is said.
[[nodiscard]] Duration launch_delay(const ParameterSet& given, std::span<const ClientInfo> clients,
                                    ClientId client);

}  // namespace bubblesim::policy
