// Turns faults of the library into bubblesim.Error, with the same words.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <type_traits>
#include <utility>

#include "sim/base/result.hpp"
#include "sim/plugin/python/python_policy.hpp"

namespace bubblesim::plugin::python {

/// A list of bubblesim.Fault.
py::list fault_list(const Errors& faults);

/// Raises bubblesim.Error with a line a fault, and the faults as its attribute `faults`. If a
/// policy of Python's raised, that is the cause; if it was no Exception (Ctrl-C), it is raised
/// itself.
[[noreturn]] void raise_faults(const Errors& faults, RunFault* of_policy = nullptr);

template <class T>
T good(CheckedResult<T> result, RunFault* of_policy = nullptr) {
  if (!result) raise_faults(result.error(), of_policy);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class T>
T good(Result<T> result) {
  if (!result) raise_faults({result.error()});
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Adds Error and Fault to the module.
void bind_errors(py::module_& module);

}  // namespace bubblesim::plugin::python
