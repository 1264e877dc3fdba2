// The client that a policy protects: a rank of training, or a service (sim/policy/policy.hpp).
#pragma once

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::policies {

inline constexpr ClientId kProtected{0};

/// A protected client without a launch for this long counts as stopped. Reconstructed: the papers'
/// systems know the number of iterations.
inline constexpr Duration kStoppedAfter = std::chrono::seconds(1);

}  // namespace bubblesim::policies
