// How the records of a trace lie in memory, as NumPy's record types. Times are whole nanoseconds.
#pragma once

#include "sim/plugin/python/arrays.hpp"

namespace bubblesim::plugin::python {

[[nodiscard]] py::dtype device_op_type();
[[nodiscard]] py::dtype host_call_type();
[[nodiscard]] py::dtype collective_type();  ///< without its list of peers
[[nodiscard]] py::dtype edge_type();
[[nodiscard]] py::dtype marker_type();
[[nodiscard]] py::dtype memory_type();
[[nodiscard]] py::dtype stall_type();
[[nodiscard]] py::dtype clock_type();
[[nodiscard]] py::dtype shape_type();

}  // namespace bubblesim::plugin::python
