// Throws while it declares its policies.
#include <stdexcept>

#include "sim/plugin/policy_library.hpp"

namespace {

bubblesim::policy::PolicySpec never_spec() { throw std::runtime_error("no licence found"); }

}  // namespace

BUBBLESIM_POLICY_LIBRARY(never_spec)
