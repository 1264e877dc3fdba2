// Spans and instants are whole nanoseconds, a Python int; these make and show them.
#include <cmath>
#include <stdexcept>

#include "sim/base/units.hpp"
#include "sim/plugin/python/bindings.hpp"

namespace bubblesim::plugin::python {
namespace {

namespace py = pybind11;

std::int64_t nanoseconds(double count, double unit) {
  const double exact = std::round(count * unit);
  if (!(std::abs(exact) < 9e18)) throw py::value_error("not a span of time in 64 bits");
  return static_cast<std::int64_t>(exact);
}

}  // namespace

void bind_time(py::module_& module) {
  module.def("us", [](double count) { return nanoseconds(count, 1e3); }, py::arg("count"),
             "Microseconds as nanoseconds, rounded to whole ones.");
  module.def("ms", [](double count) { return nanoseconds(count, 1e6); }, py::arg("count"),
             "Milliseconds as nanoseconds, rounded to whole ones.");
  module.def("seconds", [](double count) { return nanoseconds(count, 1e9); }, py::arg("count"),
             "Seconds as nanoseconds, rounded to whole ones.");
  module.def(
      "parse_duration",
      [](const std::string& text) {
        const auto span = parse_duration(text);
        if (!span) throw py::value_error(span.error().message);
        return to_ns(*span);
      },
      py::arg("text"), "\"1.5ms\" as nanoseconds; exact.");
  module.def(
      "format_duration", [](std::int64_t ns) { return format_duration(Duration{ns}); },
      py::arg("ns"), "Nanoseconds as \"1.5ms\"; exact.");
}

}  // namespace bubblesim::plugin::python
