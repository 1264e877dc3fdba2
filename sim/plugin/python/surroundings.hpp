// The surroundings of a run from Python besides its config: the registered policies, and the folder
// with devices/, models/ and the like.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/plugin/python/python_policy.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::plugin::python {

/// Built-in policies and those of the libraries (paths).
[[nodiscard]] policy::Registry known_policies(const std::vector<std::string>& libraries);

/// Adds the policies that Python registered. `fault` outlives the policies that the registry makes.
void add_registered(policy::Registry& registry, RunFault& fault);

/// Whether the config names a policy that Python registered.
[[nodiscard]] bool uses_registered(const run::RunConfig& config);

/// `given`, else $BUBBLESIM_CONFIGS, else the folder installed with the module, else the one of the
/// source tree.
[[nodiscard]] std::string config_folder(const std::optional<std::string>& given = {});

}  // namespace bubblesim::plugin::python
