// The Python module `bubblesim`.
#include "sim/plugin/python/bindings.hpp"

PYBIND11_MODULE(bubblesim, module) {
  namespace python = bubblesim::plugin::python;
  module.doc() =
      "Sharing policies in Python, and runs of the simulator. Every time is a whole number of "
      "nanoseconds, every memory size one of bytes, every client its number (0: training).";
  module.attr("__version__") = BUBBLESIM_VERSION;
  python::bind_time(module);
  python::bind_contract(module);
  python::bind_policy(module);
  python::bind_register(module);
  python::bind_run(module);
}
