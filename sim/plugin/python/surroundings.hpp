// What a run from Python finds beside its config: the policies there are, and the folder with
// devices/, models/ and the like.
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

/// Adds what Python registered. `fault` outlives what the registry makes.
void add_registered(policy::Registry& registry, const py::module_& module, RunFault& fault);

/// Whether a policy of Python's is among those of the config.
[[nodiscard]] bool uses_registered(const run::RunConfig& config, const py::module_& module);

/// `given`, else $BUBBLESIM_CONFIGS, else what was installed with the module, else the source
/// tree's.
[[nodiscard]] std::string config_folder(const py::module_& module,
                                        const std::optional<std::string>& given);

}  // namespace bubblesim::plugin::python
