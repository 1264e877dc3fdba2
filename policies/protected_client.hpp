// The client that a policy protects: a rank of training, or a service (sim/policy/policy.hpp).
#pragma once

#include "sim/base/ids.hpp"

namespace bubblesim::policies {

inline constexpr ClientId kProtected{0};

}  // namespace bubblesim::policies
