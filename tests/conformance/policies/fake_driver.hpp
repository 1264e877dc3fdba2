// The driver of sim/policy/testing for the policies that come with bubblesim, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/policy/testing/fake_driver.hpp"

namespace bubblesim::testing {

/// Makes the policy of this name, with its defaults except for `given` ("name=value"), and runs it.
[[nodiscard]] Outcome drive(std::string_view policy, const std::vector<std::string>& given,
                            const Scenario& scenario);

}  // namespace bubblesim::testing
