// A placer whose method place() is Python's, as python_policy.hpp for policies.
#pragma once

#include <memory>

#include "sim/plugin/python/python_policy.hpp"
#include "sim/policy/placement.hpp"

namespace bubblesim::plugin::python {

/// `object`: an instance of a subclass of bubblesim.Placer, or a fault. Needs the lock. `fault`
/// outlives it.
[[nodiscard]] std::unique_ptr<policy::Placer> placer_of(py::object object, RunFault& fault);

}  // namespace bubblesim::plugin::python
