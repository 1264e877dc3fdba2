// The parts of the Python module, one function a part.
#pragma once

#include <pybind11/pybind11.h>

namespace bubblesim::plugin::python {

/// Helpers for spans of time: us(), ms(), seconds(), parse_duration(), format_duration().
void bind_time(pybind11::module_& module);
/// Enumerations, what a policy is told, and what it returns.
void bind_contract(pybind11::module_& module);
/// Policy, Actions, Counters.
void bind_policy(pybind11::module_& module);
/// Declarations of parameters, and register().
void bind_register(pybind11::module_& module);
/// run() and Error.
void bind_run(pybind11::module_& module);

}  // namespace bubblesim::plugin::python
