// A policy that Python registered: its declaration, and the callable that makes it.
#pragma once

#include <pybind11/pybind11.h>

#include "sim/plugin/python/python_policy.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::plugin::python {

struct Registered {
  policy::PolicySpec spec;  ///< without maker
  py::object make;          ///< takes a dict of parameters, gives a Policy
  py::object make_placer;   ///< likewise a Placer; or None
};

/// The spec with a maker that calls Python. `fault` outlives what it makes; copies of the spec may
/// be made without the lock, the last one is destroyed with it.
[[nodiscard]] policy::PolicySpec runnable(const Registered& registered, RunFault& fault);

}  // namespace bubblesim::plugin::python
