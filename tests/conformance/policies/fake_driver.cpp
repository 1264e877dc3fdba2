#include "tests/conformance/policies/fake_driver.hpp"

#include "policies/builtin.hpp"
#include "sim/base/check.hpp"

namespace bubblesim::testing {

Outcome drive(std::string_view name, const std::vector<std::string>& given,
              const Scenario& scenario) {
  const policy::Registry registry = policies::judged_policies();
  const auto spec = registry.find(name);
  BUBBLESIM_CHECK(spec.has_value(), "no such policy");
  return drive(**spec, given, scenario);
}

}  // namespace bubblesim::testing
