// Asks for and checks the decisions of a policy before its session begins: how clients share the
// GPU, the share of each client, and which clients are admitted.
#pragma once

#include <memory>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// Vectors by client id.
struct StartDecisions {
  Sharing sharing;
  std::vector<ClientSharing> shares;
  std::vector<Admission> admissions;  ///< client 0 is always admitted
  std::vector<Bytes> resident;        ///< each client's memory on the device
};

/// The policy that the spec's function makes; fault: the function makes none, or throws.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(const PolicySpec& spec,
                                                          const ParameterSet& parameters);

/// Calls start(), share() and admit(). A filler whose memory does not fit is refused, whatever the
/// policy says. An illegal decision, or an exception, is a fault with the policy's name.
[[nodiscard]] Result<StartDecisions> start_policy(const PolicySpec& spec, Policy& policy,
                                                  const GpuInfo& gpu,
                                                  const std::vector<ClientInfo>& clients);

}  // namespace bubblesim::policy
